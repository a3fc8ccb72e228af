import assert from "node:assert/strict";

import { ClusterError } from "../../../provider/cluster/errors.ts";
import { PartialVerbError, VerbError } from "../../../provider/fronts/dynamic/errors.ts";
import { PartialFailure } from "../../../provider/resources/lifecycle.ts";

describe("errors that leave the dynamic front", () => {
  it("carry no code that Pulumi could take for one of gRPC's, and no stack where the cause is known", () => {
    const error = new VerbError("pulumi-baremetal: WorkerGroup w", new ClusterError("notFound", "GET /x", "x is not there", { status: 404 }));
    assert.equal("code" in error, false);
    assert.equal("status" in error, false);
    assert.equal("id" in error, false);
    assert.equal(`${String(error)}: ${error.stack ?? ""}`, "pulumi-baremetal: WorkerGroup w: GET /x: x is not there");
  });

  it("keep the stack of an error that nobody foresaw, and of no other", () => {
    assert.equal(new VerbError("s", new Error("plain words")).stack, "plain words");
    assert.equal(new VerbError("s", "thrown text").message, "thrown text");
    assert.equal(
      new VerbError("s", new ClusterError("invalid", "read kubeconfig", "the kubeconfig file x cannot be read")).message,
      "the kubeconfig file x cannot be read",
    );
    assert.match(new VerbError("s", new TypeError("boom")).stack ?? "", /TypeError: boom\n\s+at /);
  });

  it("of a resource that exists in part carry its id, its state and its provider", () => {
    const failure = new PartialFailure("ns/w", { replicas: 3, at: undefined }, ["1 of 3 machines is ready", "rack1-07: plan failed"]);
    const error = new PartialVerbError("s", failure, "provider text");
    assert.equal(error.id, "ns/w");
    assert.deepEqual(error.properties, { replicas: 3, __provider: "provider text" });
    assert.deepEqual(error.reasons, ["1 of 3 machines is ready", "rack1-07: plan failed"]);
    assert.equal(error.message, "1 of 3 machines is ready; rack1-07: plan failed");
  });
});
