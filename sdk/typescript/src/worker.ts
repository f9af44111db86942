/**
 * Takes jobs, hands them to handlers, and says what came of them.
 *
 * One loop asks for as many jobs as there is room for. What ended while everything was busy is settled in
 * the same request that asks for more; what ends while a request waits for jobs is settled at once.
 *
 * Invariants
 * - Never more handlers at work than `concurrency`; never more leases held than twice that, those included
 *   whose settling is not answered yet.
 * - After `stop` nothing new is begun: what is handed out that very moment is given back.
 *
 * Elsewhere: heartbeats (`beats.ts`), settling (`settler.ts`), what handlers can say (`outcome.ts`).
 */

import { performance } from "node:perf_hooks";
import { Beats } from "./beats.js";
import { Bell } from "./bell.js";
import { Held, type LeaseRecord } from "./held.js";
import { Job, type Progress } from "./job.js";
import { ofReturned, ofThrown, type LetGo, type Outcome } from "./outcome.js";
import { BatonError } from "./problem.js";
import { guarded, type OnError } from "./report.js";
import { mayPass, pauseMs } from "./retry.js";
import { connection } from "./settings.js";
import { listed, Settler, type Saying, type Settled } from "./settler.js";
import { rest, Wire } from "./wire.js";
import { checked, type Checked, type WorkerOptions } from "./worker-options.js";

/** Always a promise: it is an object itself, so types could not tell a wrong one from a result. */
export type Handler<Payload, Result extends object | void> = (job: Job<Payload>) => Promise<Result | LetGo | undefined>;

export interface StopOptions {
  /** How long handlers may still take; 8 seconds if left out. */
  graceMs?: number | undefined;
}

export interface RunOptions extends StopOptions {
  /** Which signals stop it; SIGINT and SIGTERM if left out. */
  signals?: readonly NodeJS.Signals[];
}

const TYPES = 64;
const JOBS_AT_ONCE = 100;
const GRACE_MS = 8_000;
/** How long a handler may take to end after its signal was aborted. */
const LAST_MS = 1_000;
/** What an answer may take beyond the time it was told to wait. */
const ANSWER_MS = 10_000;
/** An empty answer that comes sooner than this was not waited for. */
const SHORT_MS = 100;

export class Worker {
  readonly #wire: Wire;
  readonly #options: Checked;
  readonly #report: OnError;
  readonly #handlers = new Map<string, Handler<never, object | void>>();
  readonly #beats: Beats;
  readonly #settler: Settler;
  readonly #working = new Set<Held>();
  /** All leases: at work, or being settled. */
  readonly #held = new Set<Held>();
  /** Rung whenever there may be room, or nothing left to wait for. */
  readonly #bell = new Bell();
  readonly #hangUp = new AbortController();
  readonly #graceOver = new AbortController();
  readonly #graceTimers: NodeJS.Timeout[] = [];
  /** The loop waits for an answer, or pauses: what ends now would wait too long for it to come by. */
  #away = false;
  #asking: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: WorkerOptions = {}) {
    this.#options = checked(options);
    this.#wire = new Wire(connection(options));
    this.#report = guarded(this.#options.onError);
    this.#beats = new Beats(this.#wire, this.#report);
    this.#settler = new Settler(this.#wire, this.#options.pauses, this.#report, (held) => this.#forget(held));
  }

  get name(): string {
    return this.#options.name;
  }

  /** Serves a job type; call it for each before `run`. */
  job<Payload = unknown, Result extends object | void = object | void>(type: string, handler: Handler<Payload, Result>): this {
    if (this.#asking) throw new Error("the worker runs already; name all its job types before");
    if (this.#handlers.has(type)) throw new Error(`there is a handler for ${type} already`);
    if (this.#handlers.size >= TYPES) throw new Error(`a worker serves at most ${TYPES} job types`);
    this.#handlers.set(type, handler as Handler<never, object | void>);
    return this;
  }

  /**
   * Works until it is stopped, by `stop` or a signal; a second signal cuts the grace short. Rejects if the
   * server refuses it for good, such as for its key or an unknown job type, after what runs has ended.
   */
  async run({ graceMs = GRACE_MS, signals = ["SIGINT", "SIGTERM"] }: RunOptions = {}): Promise<void> {
    if (this.#asking || this.#ending) throw new Error("a worker runs once; make another");
    if (this.#handlers.size === 0) throw new Error("the worker serves no job type; name one with `job`");
    let heard = 0;
    const onSignal = () => {
      heard += 1;
      void this.stop({ graceMs: heard === 1 ? graceMs : 0 });
      // A third one does what it does to any program.
      if (heard === 2) unhear();
    };
    const unhear = () => signals.forEach((signal) => process.off(signal, onSignal));
    signals.forEach((signal) => process.on(signal, onSignal));
    let fatal: unknown;
    this.#asking = this.#ask().catch((error: unknown) => {
      fatal = error;
    });
    try {
      await this.#asking;
      await this.stop({ graceMs });
    } finally {
      unhear();
    }
    if (fatal !== undefined) throw fatal;
  }

  /**
   * Leases nothing more, lets handlers finish for `graceMs`, then aborts and gives back what is left.
   * Resolves when everything was said to the server, or could not be said for as long as it would count.
   * Calling it again can only shorten the grace. Do not await it in a handler: it waits for that.
   */
  stop({ graceMs = GRACE_MS }: StopOptions = {}): Promise<void> {
    this.#hangUp.abort();
    if (!this.#graceOver.signal.aborted) {
      this.#graceTimers.push(setTimeout(() => this.#graceOver.abort(), graceMs));
    }
    this.#ending ??= this.#end();
    return this.#ending;
  }

  get #stopping(): boolean {
    return this.#hangUp.signal.aborted;
  }

  /** Asks for jobs until the worker stops. Throws what the server refuses for good. */
  async #ask(): Promise<void> {
    let tries = 0;
    let carrying = true;
    while (!this.#stopping) {
      const { concurrency } = this.#options;
      const room = Math.min(concurrency - this.#working.size, 2 * concurrency - this.#held.size, JOBS_AT_ONCE);
      if (room <= 0) {
        this.#settler.flush();
        await this.#bell.wait();
        continue;
      }
      const carried: Saying[] = carrying ? this.#settler.carry() : [];
      this.#settler.flush();
      try {
        const startedAt = performance.now();
        const begun = await this.#exchange(room, carried);
        tries = 0;
        carrying = true;
        // A server that does not wait, such as one that is about to stop, is not asked without end.
        if (begun + carried.length === 0 && performance.now() - startedAt < SHORT_MS) await this.#breathe();
      } catch (error) {
        this.#settler.giveBack(carried);
        if (this.#stopping) break;
        // What was taken along may be what was refused; only a request without it tells.
        carrying = carried.length === 0;
        if (!carrying) continue;
        if (!mayPass(error)) throw error;
        tries += 1;
        if (tries === 1) this.#report(error, { during: "lease" });
        await this.#breathe(tries, error);
      }
    }
    this.#settler.flush();
  }

  /** A pause that ends early when the worker stops. */
  async #breathe(tries = 1, error?: unknown): Promise<void> {
    const ms = pauseMs(tries, this.#options.pauses, error, Math.random);
    this.#away = true;
    await rest(ms, this.#hangUp.signal).catch(() => undefined);
    this.#away = false;
  }

  /** How many jobs were begun. */
  async #exchange(room: number, carried: Saying[]): Promise<number> {
    const { lanes, projects, name } = this.#options;
    // What was settled along the way should be answered now, and not when the next job comes.
    const waitMs = carried.length > 0 ? 0 : this.#options.waitMs;
    this.#away = true;
    const asked = this.#wire.once<{ leases: LeaseRecord[]; settled?: Settled[] }>({
      method: "POST",
      path: "/api/v1/worker/lease",
      body: {
        types: [...this.#handlers.keys()],
        lanes,
        projects,
        max: room,
        waitMs,
        worker: name,
        ...(carried.length > 0 && { settle: listed(carried) }),
      },
      timeoutMs: waitMs + ANSWER_MS,
      // Hanging up while waiting costs nothing. A request that settles is short, and better answered.
      signal: waitMs > 0 ? this.#hangUp.signal : undefined,
    });
    const answer = await asked.finally(() => (this.#away = false));
    for (const record of answer.leases) this.#begin(record);
    this.#settler.answered(carried, answer.settled ?? []);
    return answer.leases.length;
  }

  #begin(record: LeaseRecord): void {
    const held = new Held(record);
    this.#held.add(held);
    this.#beats.add(held);
    const handler = this.#handlers.get(record.job.type);
    if (this.#stopping || !handler) {
      this.#settler.add(held, { release: {} });
      this.#settler.flush();
      return;
    }
    this.#working.add(held);
    void this.#work(held, handler);
  }

  async #work(held: Held, handler: Handler<never, object | void>): Promise<void> {
    const job = new Job<never>(held, (progress) => this.#progress(held, progress));
    let outcome: Outcome;
    try {
      outcome = ofReturned(await handler(job), job.wakes);
    } catch (error) {
      outcome = ofThrown(error, held.signal);
      if ("fail" in outcome && outcome.fail.code === "crash") {
        this.#report(error instanceof Error ? error : new Error(outcome.fail.message), held.about("job"));
      }
    }
    this.#working.delete(held);
    // A lease that was lost, or given back because the time was over, has nothing more to say.
    if (held.stage === "working") this.#settler.add(held, outcome);
    else if (held.stage === "over") this.#held.delete(held);
    if (this.#away || this.#stopping) this.#settler.flush();
    this.#bell.ring();
  }

  async #progress(held: Held, { percent, note, context }: Progress): Promise<void> {
    if (held.stage !== "working") return;
    try {
      const { cancelRequested } = await this.#wire.once<{ cancelRequested: boolean }>({
        method: "POST",
        path: "/api/v1/worker/progress",
        body: { lease: held.lease, percent: whole(percent), note, context },
        timeoutMs: ANSWER_MS,
      });
      if (cancelRequested) held.interrupt("cancelled");
    } catch (error) {
      if (error instanceof BatonError && error.code === "lease_lost") this.#beats.lose(held, error.detail);
      else this.#report(error as Error, held.about("progress"));
    }
  }

  /** Nothing more is to be said about it. */
  #forget(held: Held): void {
    this.#beats.remove(held);
    this.#held.delete(held);
    this.#bell.ring();
  }

  async #end(): Promise<void> {
    this.#bell.ring();
    this.#settler.flush();
    await this.#until(this.#graceOver.signal);
    for (const held of this.#working) held.interrupt("stopping");
    await this.#until(AbortSignal.timeout(LAST_MS));
    for (const held of this.#working) {
      // Handlers that do not listen keep running, but what they say no longer counts.
      if (held.stage === "working") this.#settler.add(held, { release: {} });
    }
    await this.#asking;
    await this.#settler.idle();
    this.#graceTimers.forEach(clearTimeout);
  }

  /** Waits until no handler is at work, or the signal. */
  async #until(signal: AbortSignal): Promise<void> {
    const ring = () => this.#bell.ring();
    signal.addEventListener("abort", ring);
    while (this.#working.size > 0 && !signal.aborted) await this.#bell.wait();
    signal.removeEventListener("abort", ring);
  }
}

/** The server takes whole numbers from 0 to 100. */
function whole(percent: number | undefined): number | undefined {
  if (percent === undefined || Number.isNaN(percent)) return undefined;
  return Math.round(Math.min(Math.max(percent, 0), 100));
}
