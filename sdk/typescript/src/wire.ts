/**
 * One exchange with the server, and exchanges that are repeated until they are answered.
 *
 * Invariants
 * - The key goes into one header of requests to one address, and nowhere else: redirects are not followed.
 * - Whatever is repeated here is safe to repeat: reads, puts, what carries an idempotency key, and
 *   settlings, which are idempotent by themselves.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { BatonError, refused } from "./problem.js";
import { pauseMs, worthRepeating, type Pauses } from "./retry.js";

export interface Request {
  method: "GET" | "PUT" | "POST";
  path: string;
  body?: unknown;
  idempotencyKey?: string;
  /** One exchange takes at most so long. */
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

export interface Retry extends Pauses {
  /** Exchanges in all. */
  tries: number;
  /** If the server asks us to stay away for longer, the caller decides. */
  longestMs: number;
}

export interface WireOptions {
  url: string;
  key: string;
  retry?: Partial<Retry>;
  timeoutMs?: number;
  /** For tests. */
  pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
  random?: () => number;
}

export const RETRY: Retry = { tries: 6, baseMs: 200, maxMs: 10_000, longestMs: 60_000 };
const TIMEOUT_MS = 30_000;

export class Wire {
  readonly #url: string;
  // Private in the language's own sense: no inspection and no JSON shows it.
  readonly #key: string;
  readonly #retry: Retry;
  readonly #timeoutMs: number;
  readonly #pause: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly #random: () => number;

  constructor(options: WireOptions) {
    this.#url = options.url;
    this.#key = options.key;
    this.#retry = { ...RETRY, ...options.retry };
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#pause = options.pause ?? rest;
    this.#random = options.random ?? Math.random;
  }

  /** Exchanges until there is an answer that another try would not change, or there were enough. */
  async call<Answer>(request: Request): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.once<Answer>(request);
      } catch (error) {
        if (tries >= this.#retry.tries || !worthRepeating(error)) throw error;
        const ms = pauseMs(tries, this.#retry, error, this.#random);
        if (ms > Math.max(this.#retry.longestMs, this.#retry.maxMs)) throw error;
        await this.#pause(ms, request.signal);
      }
    }
  }

  /** One exchange. Throws a `BatonError`, or what the given signal was aborted with. */
  async once<Answer>(request: Request): Promise<Answer> {
    request.signal?.throwIfAborted();
    const headers: Record<string, string> = { accept: "application/json", authorization: `Bearer ${this.#key}` };
    const init: RequestInit = { method: request.method, headers, redirect: "manual" };
    if (request.method !== "GET") {
      // Said also where there is nothing to send: the server asks for it.
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.body ?? {});
    }
    if (request.idempotencyKey !== undefined) headers["idempotency-key"] = request.idempotencyKey;

    const timeoutMs = request.timeoutMs ?? this.#timeoutMs;
    const { status, ok, answered, text } = await within(timeoutMs, request.signal, async (signal) => {
      const response = await fetch(this.#url + request.path, { ...init, signal });
      return { status: response.status, ok: response.ok, answered: response.headers, text: await response.text() };
    });
    if (!ok) throw refused(status, answered, text);
    if (text === "") return undefined as Answer;
    try {
      return JSON.parse(text) as Answer;
    } catch (cause) {
      throw new BatonError({ status, code: "bad_answer", detail: "the answer is not JSON", cause });
    }
  }
}

/** Waits, and not longer than the signal allows. */
export async function rest(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/**
 * One controller per exchange, let go of when it ends. Combined signals of the platform stay attached to a
 * long-lived one, and a worker's lives as long as the worker.
 */
async function within<T>(ms: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const timer = setTimeout(stop, ms);
  outer?.addEventListener("abort", stop, { once: true });
  try {
    return await work(controller.signal);
  } catch (cause) {
    outer?.throwIfAborted();
    throw controller.signal.aborted
      ? new BatonError({ status: 0, code: "timeout", detail: `no answer within ${ms} ms`, cause })
      : new BatonError({ status: 0, code: "connection_failed", detail: reasonOf(cause), cause });
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", stop);
  }
}

/** `fetch failed` alone helps nobody; the reason is its cause. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error));
}
