/** The few parts of Redfish resources that are read; everything is optional because real BMCs leave things out. */
import { z } from "zod";

const link = z.object({ "@odata.id": z.string().min(1) });
const optionalText = z.string().optional().catch(undefined);
const optionalLink = link.optional().catch(undefined);

export const serviceRoot = z.object({
  Systems: optionalLink,
  SessionService: optionalLink,
  AccountService: optionalLink,
  Vendor: optionalText,
  Product: optionalText,
  RedfishVersion: optionalText,
  Links: z.object({ Sessions: optionalLink }).optional().catch(undefined),
});

export const collection = z.object({
  Members: z.array(link),
  "Members@odata.nextLink": optionalText,
});

export const computerSystem = z.object({
  "@odata.id": optionalText,
  "@odata.type": optionalText,
  "@odata.etag": optionalText,
  PowerState: z.unknown().optional(),
  UUID: optionalText,
  SerialNumber: optionalText,
  Manufacturer: optionalText,
  Model: optionalText,
  Links: z
    .object({ ManagedBy: z.array(link).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  Actions: z
    .object({
      "#ComputerSystem.Reset": z
        .object({
          target: optionalText,
          "ResetType@Redfish.AllowableValues": z.array(z.string()).optional().catch(undefined),
          "@Redfish.ActionInfo": optionalText,
        })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
});
export type ComputerSystem = z.infer<typeof computerSystem>;

export const actionInfo = z.object({
  Parameters: z.array(z.object({ Name: optionalText, AllowableValues: z.array(z.string()).optional().catch(undefined) })),
});

export const manager = z.object({ FirmwareVersion: optionalText, Model: optionalText });

export const accountService = z.object({ HTTPBasicAuth: optionalText });

const extendedMessage = z.object({ MessageId: optionalText, Message: optionalText });
/** Some BMCs send one object where the standard has an array. */
const extendedInfo = z
  .union([z.array(extendedMessage), extendedMessage.transform((one) => [one])])
  .optional()
  .catch(undefined);
export const errorBody = z.object({
  error: z.object({ code: optionalText, message: optionalText, "@Message.ExtendedInfo": extendedInfo }).optional().catch(undefined),
  "@Message.ExtendedInfo": extendedInfo,
});
