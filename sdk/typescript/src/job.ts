/** What a handler is handed. */

import type { Held, LeasedJob } from "./held.js";
import type { Answer } from "./records.js";

export interface Progress {
  /** Brought between 0 and 100, and rounded. */
  percent?: number | undefined;
  note?: string | undefined;
  context?: { threadId?: string | undefined; turnId?: string | undefined } | undefined;
}

export class Job<Payload = unknown> {
  readonly id: string;
  readonly type: string;
  /** Of the job type, as it was when the job was enqueued. */
  readonly version: number;
  readonly projectId: string;
  readonly lane: string;
  readonly payload: Payload;
  /** 1 for the first execution. Going on after parking or asking is the same attempt. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** How many attempts said that they failed. */
  readonly failures: number;
  /** How often the job was woken so far. */
  readonly wakes: number;
  /** What a person said, if the job asked. */
  readonly answer: Answer | null;
  readonly createdAt: string;
  /** How long this execution may take in all; null is for ever. */
  readonly timeoutMs: number | null;
  /** Aborted when the work should stop; its reason is an `Interrupted` that says why. */
  readonly signal: AbortSignal;
  readonly #tell: (progress: Progress) => Promise<void>;

  /** @internal */
  constructor(held: Held, tell: (progress: Progress) => Promise<void>) {
    const job: LeasedJob = held.record.job;
    this.id = job.id;
    this.type = job.type;
    this.version = job.version;
    this.projectId = job.projectId;
    this.lane = job.lane;
    this.payload = held.record.payload as Payload;
    this.attempt = job.attempt;
    this.maxAttempts = job.maxAttempts;
    this.failures = job.failures;
    this.wakes = job.wakes;
    this.answer = job.answer;
    this.createdAt = job.createdAt;
    this.timeoutMs = held.record.timeoutMs;
    this.signal = held.signal;
    this.#tell = tell;
  }

  /**
   * Shows how far the job is. Never rejects: that nobody could be told is no reason to fail the work; the
   * worker's `onError` hears of it.
   */
  progress(progress: Progress): Promise<void> {
    return this.#tell(progress);
  }
}
