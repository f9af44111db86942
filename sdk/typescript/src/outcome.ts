/**
 * What a handler can say about its job, and how that is written for the server.
 *
 * Returning an object completes the job; returning `park()`, `ask()` or `release()` lets go of it
 * unfinished; throwing a `Fail` fails it with a code, throwing anything else with the code `crash`.
 */

import { Interrupted } from "./interrupted.js";
import type { Question } from "./records.js";

/** `transient`: try again; `deterministic`: it would go wrong again; `fatal`: nothing of this kind can go well. */
export type FailClass = "transient" | "deterministic" | "fatal";

export class Fail extends Error {
  override readonly name: string = "Fail";
  readonly code: string;
  /** Left out, it follows from the code. */
  readonly class: FailClass | undefined;
  /** For tools: false says that nothing was done outside, so that an unsafe one may be tried again without asking people. */
  readonly acted: boolean | undefined;

  constructor(code: string, message = code, options: FailOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.class = options.class;
    this.acted = options.acted;
  }
}

export interface FailOptions {
  class?: FailClass | undefined;
  acted?: boolean | undefined;
  cause?: unknown;
}

type Said = { park: { forMs?: number } } | { ask: { question: Question } } | { release: object };

/** Lets go of a job that is not finished. Made by `park`, `ask` and `release`. */
export class LetGo {
  // A private member, so that no result passes for one by its shape.
  readonly #said: Said;

  constructor(said: Said) {
    this.#said = said;
  }

  /** @internal */
  outcome(wakes: number): Outcome {
    // What was seen goes along, so that a wake-up between looking and parking is not lost.
    return "park" in this.#said ? { park: { ...this.#said.park, seen: wakes } } : this.#said;
  }
}

/** Waits without holding a worker: until the time is over or somebody wakes the job. */
export function park({ forMs }: { forMs?: number | undefined } = {}): LetGo {
  return new LetGo({ park: forMs === undefined ? {} : { forMs: Math.ceil(forMs) } });
}

/** Asks people; the job comes back with `job.answer`. */
export function ask(question: Question | string): LetGo {
  return new LetGo({ ask: { question: typeof question === "string" ? { prompt: question } : question } });
}

/** Gives the job back without counting a failure. */
export function release(): LetGo {
  return new LetGo({ release: {} });
}

/** As it stands in the list of `/api/v1/worker/settle`, without the lease. */
export type Outcome =
  | { complete: { result?: object } }
  | { fail: { code: string; message: string; class?: FailClass; acted?: boolean } }
  | { park: { forMs?: number; seen: number } }
  | { ask: { question: Question } }
  | { release: object };

/** The longest message that the server keeps. */
const MESSAGE_CHARS = 2_000;

export function ofReturned(value: unknown, wakes: number): Outcome {
  if (value instanceof LetGo) return value.outcome(wakes);
  if (value === undefined || value === null) return { complete: {} };
  if (typeof value !== "object" || Array.isArray(value)) {
    const what = Array.isArray(value) ? "a list" : `a ${typeof value}`;
    return failed("invalid_result", `a result is an object; the handler returned ${what}`, "deterministic");
  }
  return { complete: { result: value } };
}

export function ofThrown(error: unknown, signal: AbortSignal): Outcome {
  if (error instanceof Fail) return failed(error.code, error.message, error.class, error.acted);
  // Who stops because it was told to has not failed. A cancelled job ends as cancelled all the same.
  if (signal.aborted && (error === signal.reason || error instanceof Interrupted || isAbort(error))) return { release: {} };
  return failed("crash", said(error), "deterministic");
}

export function failed(code: string, message: string, kind: FailClass | undefined, acted?: boolean): Outcome {
  return { fail: { code, message: cut(message), ...(kind && { class: kind }), ...(acted !== undefined && { acted }) } };
}

/**
 * A copy that no later change of the handler's object reaches. A result that JSON cannot carry (a BigInt, a
 * circle) fails the job: the next attempt would return it again.
 */
export function frozen(outcome: Outcome): { outcome: Outcome; bytes: number } {
  let text: string;
  try {
    text = JSON.stringify(outcome);
  } catch (error) {
    text = JSON.stringify(failed("invalid_result", `what the handler returned is not JSON: ${said(error)}`, "deterministic"));
  }
  return { outcome: JSON.parse(text) as Outcome, bytes: Buffer.byteLength(text) };
}

function said(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return typeof error === "string" ? error : `something was thrown that is no error: ${typeof error}`;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function cut(text: string): string {
  const chars = Array.from(text);
  return chars.length > MESSAGE_CHARS ? `${chars.slice(0, MESSAGE_CHARS - 1).join("")}…` : text;
}
