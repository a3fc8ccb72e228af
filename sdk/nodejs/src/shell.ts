/**
 * What Pulumi keeps as the provider of each dynamic resource, in its state, and evaluates in a process of its own.
 *
 * It is written out here rather than left to Pulumi's serialiser: the text then is the same under every version of
 * Pulumi, holds nothing of the program, and costs a program nothing to make. It only finds the code that is installed
 * *now*, so that a later version of this package repairs what an older one created. It must not change: every change
 * of it shows as an update of every resource of every user.
 */

/** The kinds of resource that the dynamic host serves. */
export type DynamicKind = "MachineInventoryPool" | "WorkerGroup" | "RemediationPolicy" | "ControllerDefinitions" | "ControllerRemoval";

/** The provider of one kind, as Pulumi stores it. */
export function providerText(kind: DynamicKind): string {
  return `exports.handler = () => {
  const call = async (verb, ...args) => {
    let host;
    try {
      host = require("pulumi-baremetal/dynamic-host");
    } catch (error) {
      const reason = String(error.message).split("\\n")[0];
      throw new Error("The npm package pulumi-baremetal cannot be loaded from " + process.cwd() + " (" + reason + "). Install it there, where Pulumi.yaml's program lies: npm install pulumi-baremetal. It needs Node 22.19 or newer; this is " + process.version + ".");
    }
    return host.call("${kind}", verb, args);
  };
  return {
    configure: (request) => call("configure", request.config),
    check: (olds, news) => call("check", olds, news),
    diff: (id, olds, news) => call("diff", id, olds, news),
    create: (inputs) => call("create", inputs),
    read: (id, props) => call("read", id, props),
    update: (id, olds, news) => call("update", id, olds, news),
    delete: (id, props) => call("delete", id, props),
  };
};
`;
}
