/** Decodes the answer of a watch: one JSON document a line. */
import type { WatchEvent } from "./cluster.ts";
import { ClusterError, errorOfAnswer } from "./errors.ts";
import type { LiveObject } from "./objects.ts";

interface Line {
  type: string;
  object: LiveObject & { code?: number };
}

function parseLine(request: string, line: string): Line {
  try {
    return JSON.parse(line) as Line;
  } catch (error) {
    throw new ClusterError("server", request, "the API server's watch sent something that is not JSON", { cause: error });
  }
}

function eventOf(request: string, line: string): WatchEvent {
  const { type, object } = parseLine(request, line);
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object };
    case "BOOKMARK":
      return { type, resourceVersion: object.metadata.resourceVersion };
    default:
      throw errorOfAnswer("WATCH", request, object.code ?? 500, undefined, JSON.stringify(object));
  }
}

/** Yields the events of the stream; an ERROR event is thrown as the `ClusterError` that it stands for. */
export async function* decodeWatch(request: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  for await (const chunk of body) {
    const lines = decoder.decode(chunk, { stream: true }).split("\n");
    for (const [index, line] of lines.entries()) {
      parts.push(line);
      if (index === lines.length - 1) break;
      const complete = parts.join("");
      parts = [];
      if (complete !== "") yield eventOf(request, complete);
    }
  }
}
