/**
 * Settling: saying what came of jobs until it is answered.
 *
 * What is to be said waits in one list. A worker that asks for more jobs takes it along; otherwise it goes
 * out by itself, one request at a time, so that what ends meanwhile goes together.
 *
 * Invariants
 * - An outcome is let go of only when it was answered, or when the lease cannot be ours any more: never
 *   before `leaseMs` have passed.
 * - One outcome that the server does not understand holds up no other, and does not leave its job to be
 *   tried again without end: the job fails with `outcome_refused` instead.
 */

import { performance } from "node:perf_hooks";
import type { Held } from "./held.js";
import { failed, frozen, type Outcome } from "./outcome.js";
import { BatonError } from "./problem.js";
import type { OnError } from "./report.js";
import { mayPass, pauseMs, type Pauses } from "./retry.js";
import { rest, type Wire } from "./wire.js";

/** One item of the answer to settlings. */
export interface Settled {
  lease: string;
  settled?: "now" | "already";
  code?: string;
  detail?: string;
}

/** An outcome on its way. */
export interface Saying {
  held: Held;
  outcome: Outcome;
  bytes: number;
  since: number;
  /** The server refused it in company; now it goes by itself. */
  alone: boolean;
}

const AT_ONCE = 100;
/** The server takes more, but keeps only a few large requests in memory at once. */
const BYTES_AT_ONCE = 900 * 1024;
const TIMEOUT_MS = 10_000;
/** What concerns the contents of a request, and so perhaps only one of its outcomes. */
const ABOUT_CONTENTS = new Set([400, 413, 422]);
/** Faults of the server's that it might tell of one outcome alone. */
const PASSING = new Set(["internal", "outcome_unknown", "store_unavailable", "store_closed", "overloaded"]);

export class Settler {
  readonly #wire: Wire;
  readonly #pauses: Pauses;
  readonly #report: OnError;
  readonly #done: (held: Held) => void;
  #waiting: Saying[] = [];
  #running: Promise<void> | undefined;

  /** `done` is called when nothing more is to be said about a lease. */
  constructor(wire: Wire, pauses: Pauses, report: OnError, done: (held: Held) => void) {
    this.#wire = wire;
    this.#pauses = pauses;
    this.#report = report;
    this.#done = done;
  }

  /** Notes what is to be said; `flush` or `carry` must follow. */
  add(held: Held, outcome: Outcome): void {
    held.stage = "settling";
    this.#waiting.push({ held, ...frozen(outcome), since: performance.now(), alone: false });
  }

  /** Takes out what can go along with another request. Whoever takes it says how that was answered, or gives it back. */
  carry(): Saying[] {
    return this.#waiting[0]?.alone ? [] : this.#take();
  }

  /** What fits into one request. */
  #take(): Saying[] {
    const taken: Saying[] = [];
    let bytes = 0;
    while (taken.length < AT_ONCE) {
      const next = this.#waiting[0];
      if (!next || (taken.length > 0 && (next.alone || bytes + next.bytes > BYTES_AT_ONCE))) break;
      taken.push(next);
      this.#waiting.shift();
      bytes += next.bytes + next.held.lease.length + 16;
      if (next.alone) break;
    }
    return taken;
  }

  /** A request that was not about them went wrong: they are said again, by themselves. */
  giveBack(sayings: Saying[]): void {
    for (const saying of sayings) saying.since = performance.now();
    this.#waiting.unshift(...sayings);
    this.flush();
  }

  /** Whether nothing has to be said again. */
  answered(sayings: Saying[], settled: readonly Settled[]): boolean {
    let all = true;
    const answers = new Map(settled.map((answer) => [answer.lease, answer]));
    for (const saying of sayings) {
      const answer = answers.get(saying.held.lease);
      if (answer?.settled !== undefined) this.#end(saying);
      else if (answer?.code !== undefined && !PASSING.has(answer.code)) this.#refused(saying, refusal(answer));
      else {
        all = false;
        this.#again(saying, refusal(answer));
      }
    }
    this.flush();
    return all;
  }

  /** Sends what waits, unless that is being done already. */
  flush(): void {
    if (this.#running || this.#waiting.length === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.flush();
    });
  }

  /** Until everything was said. */
  async idle(): Promise<void> {
    this.flush();
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    let tries = 0;
    for (let sayings = this.#take(); sayings.length > 0; sayings = this.#take()) {
      let fault: unknown;
      let stuck: boolean;
      try {
        const { settled } = await this.#wire.once<{ settled: Settled[] }>({
          method: "POST",
          path: "/api/v1/worker/settle",
          body: { outcomes: listed(sayings) },
          timeoutMs: TIMEOUT_MS,
        });
        stuck = !this.answered(sayings, settled);
      } catch (error) {
        fault = error;
        stuck = mayPass(error);
        this.#unanswered(sayings, error as Error, tries === 0);
      }
      tries = stuck ? tries + 1 : 0;
      if (stuck && this.#waiting.length > 0) await rest(pauseMs(tries, this.#pauses, fault, Math.random));
    }
  }

  #unanswered(sayings: Saying[], error: Error, first: boolean): void {
    if (mayPass(error)) {
      if (first) this.#report(error, { during: "settle" });
      for (const saying of sayings.toReversed()) this.#again(saying, error);
    } else if (sayings.length > 1 && error instanceof BatonError && ABOUT_CONTENTS.has(error.status)) {
      for (const saying of sayings) saying.alone = true;
      this.#waiting.unshift(...sayings);
    } else {
      for (const saying of sayings) this.#refused(saying, error);
    }
  }

  /** Says it again, as long as the lease can be ours. */
  #again(saying: Saying, error: Error): void {
    const until = Math.max(saying.since + saying.held.leaseMs, saying.held.goodUntil);
    if (performance.now() < until) {
      this.#waiting.unshift(saying);
    } else {
      this.#report(error, saying.held.about("settle"));
      this.#end(saying);
    }
  }

  #refused(saying: Saying, error: Error): void {
    this.#report(error, saying.held.about("settle"));
    const { code, detail, status } = error as Partial<BatonError>;
    const hopeless = code === "lease_lost" || status === 401 || status === 403 || "fail" in saying.outcome;
    if (hopeless) {
      this.#end(saying);
    } else {
      const why = `the server refused what came of the job: ${code}: ${detail}`;
      this.add(saying.held, failed("outcome_refused", why, "deterministic"));
    }
  }

  #end(saying: Saying): void {
    saying.held.stage = "over";
    this.#done(saying.held);
  }
}

/** As they stand in a request. */
export function listed(sayings: Saying[]): object[] {
  return sayings.map(({ held, outcome }) => ({ lease: held.lease, ...outcome }));
}

function refusal(answer: Settled | undefined): BatonError {
  const code = answer?.code ?? "bad_answer";
  const detail = answer?.detail ?? "the answer says nothing about the outcome";
  return new BatonError({ status: code === "lease_lost" ? 409 : 0, code, detail });
}
