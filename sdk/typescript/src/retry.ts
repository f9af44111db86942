/** Which exchanges are worth repeating, and how long to wait before that. */

import { BatonError } from "./problem.js";

const AGAIN = new Set([408, 429, 502, 503, 504]);

export interface Pauses {
  /** The first pause; each further one is twice as long. */
  baseMs: number;
  /** The longest that we choose by ourselves. */
  maxMs: number;
}

/** Nothing was answered, or an answer that another try may change. */
export function worthRepeating(error: unknown): error is BatonError {
  if (!(error instanceof BatonError)) return false;
  switch (error.code) {
    // The first request still runs; its answer is there for whoever asks again with the same key.
    case "idempotency_in_flight":
      return true;
    // Only a restart with another setting helps.
    case "queue_disabled":
    case "feature_disabled":
      return false;
    // A batch that is larger than the queue never fits; the server says so by naming no time.
    case "queue_full":
      return error.retryAfterMs !== undefined;
    case "bad_answer":
      return false;
    default:
      return error.status === 0 || AGAIN.has(error.status);
  }
}

/** For what a worker says about its jobs: every fault of the server's may pass. */
export function mayPass(error: unknown): error is BatonError {
  return error instanceof BatonError && (error.status === 0 || error.status >= 500 || worthRepeating(error));
}

/** The pause after so many tries: growing, jittered so that many do not come back together, never too early. */
export function pauseMs(tries: number, pauses: Pauses, error: unknown, random: () => number): number {
  const grown = Math.min(pauses.maxMs, pauses.baseMs * 2 ** Math.min(tries - 1, 30));
  const own = grown * (0.5 + random() / 2);
  const asked = error instanceof BatonError ? error.retryAfterMs : undefined;
  return asked === undefined ? own : Math.max(own, asked + random() * pauses.baseMs);
}
