/** Sends a request again while the API server says that it may succeed later; a kind just established answers 429 for about a second. */
import { isTransient } from "../../provider/cluster/errors.ts";

const TIMEOUT_MS = 20_000;
const INTERVAL_MS = 100;

export async function retryTransient<T>(send: () => Promise<T>, alsoRetry: (error: unknown) => boolean = () => false): Promise<T> {
  const began = performance.now();
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(isTransient(error) || alsoRetry(error)) || performance.now() - began > TIMEOUT_MS) throw error;
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }
  }
}
