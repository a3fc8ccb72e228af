/** What a model says of an input beside its type: read by the schema generator, and by `diff` for what replaces a resource. */
import "zod";

declare module "zod" {
  interface GlobalMeta {
    /** Hidden in state and output. */
    secret?: boolean;
    /** A change replaces the resource; the old one goes first, as both would claim the same hosts. */
    replaceOnChanges?: boolean;
    /** Default that is computed or cannot stand in the model, for the documentation. */
    defaultNote?: string;
  }
}
