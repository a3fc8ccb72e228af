import assert from "node:assert/strict";

import { requestInfo } from "../../testbed/request-info.ts";

describe("requestInfo", () => {
  const cases: [method: string, url: string, expected: object][] = [
    ["GET", "/version", { verb: "get", group: "", write: false }],
    ["GET", "/apis/cluster.x-k8s.io/v1beta2", { verb: "get", group: "", write: false }],
    ["GET", "/api/v1/nodes", { verb: "list", group: "", resource: "nodes", write: false }],
    ["GET", "/api/v1/nodes?watch=true&resourceVersion=1", { verb: "watch", group: "", resource: "nodes", write: false }],
    ["GET", "/api/v1/nodes/n1", { verb: "get", group: "", resource: "nodes", name: "n1", write: false }],
    ["PUT", "/api/v1/namespaces/a/status", { verb: "update", group: "", resource: "namespaces", name: "a", subresource: "status", write: true }],
    ["GET", "/api/v1/namespaces/a", { verb: "get", group: "", resource: "namespaces", name: "a", write: false }],
    ["POST", "/api/v1/namespaces/a/pods", { verb: "create", group: "", resource: "pods", namespace: "a", write: true }],
    [
      "POST",
      "/api/v1/namespaces/a/pods/p/eviction",
      { verb: "create", group: "", resource: "pods", subresource: "eviction", namespace: "a", name: "p", write: true },
    ],
    [
      "PATCH",
      "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/m/status?fieldManager=x",
      { verb: "patch", group: "cluster.x-k8s.io", resource: "machines", subresource: "status", namespace: "a", name: "m", write: true },
    ],
    ["PATCH", "/api/v1/namespaces/a/pods/p?dryRun=All", { verb: "patch", group: "", resource: "pods", namespace: "a", name: "p", write: false }],
    ["DELETE", "/api/v1/namespaces/a/pods", { verb: "deletecollection", group: "", resource: "pods", namespace: "a", write: true }],
    ["DELETE", "/api/v1/namespaces/a/pods/p", { verb: "delete", group: "", resource: "pods", namespace: "a", name: "p", write: true }],
    [
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      { verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews", write: false },
    ],
    [
      "POST",
      "/api/v1/namespaces/a/serviceaccounts/s/token",
      { verb: "create", group: "", resource: "serviceaccounts", subresource: "token", namespace: "a", name: "s", write: false },
    ],
  ];
  for (const [method, url, expected] of cases) {
    it(`reads ${method} ${url}`, () => {
      assert.deepEqual(requestInfo(method, url), expected);
    });
  }
});
