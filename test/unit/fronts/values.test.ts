import assert from "node:assert/strict";

import fc from "fast-check";

import { propertiesToJson, toJson, withoutProvider } from "../../../provider/fronts/dynamic/values.ts";

describe("values for the engine", () => {
  it("keeps what JSON can hold and makes the rest so", () => {
    const value = {
      text: "a",
      none: undefined,
      nothing: null,
      method: () => 1,
      when: new Date("2026-01-02T03:04:05Z"),
      never: new Date(Number.NaN),
      small: 3n,
      huge: 2n ** 70n,
      nan: Number.NaN,
      list: [undefined, 1, { gone: undefined }],
      map: new Map([["k", 1n]]),
      set: new Set(["a"]),
    };
    assert.deepEqual(toJson(value), {
      text: "a",
      nothing: null,
      when: "2026-01-02T03:04:05.000Z",
      never: null,
      small: 3,
      huge: "1180591620717411303424",
      nan: null,
      list: [null, 1, {}],
      map: { k: 1 },
      set: ["a"],
    });
  });

  it("survives a trip through JSON, whatever went in", () => {
    fc.assert(
      fc.property(fc.object({ withDate: true, withBigInt: true, withMap: true, withSet: true, maxDepth: 4 }), (value) => {
        const json = propertiesToJson(value);
        // JSON has no negative zero.
        assert.deepEqual(JSON.parse(JSON.stringify(json)), JSON.parse(JSON.stringify(json, (_key, item: unknown) => (Object.is(item, -0) ? 0 : item))));
        assert.equal(JSON.stringify(json).includes("undefined:"), false);
      }),
    );
  });

  it("takes the stored provider away and nothing else", () => {
    assert.deepEqual(withoutProvider({ __provider: "text", a: 1 }), { a: 1 });
  });

  it("refuses properties that are no object", () => {
    assert.throws(() => propertiesToJson([1]), /must be an object/);
  });
});
