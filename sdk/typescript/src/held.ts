/** A lease that we hold, from when it was handed to us until it is settled or lost. */

import { performance } from "node:perf_hooks";
import { Interrupted, type Why } from "./interrupted.js";
import type { Answer } from "./records.js";
import type { About } from "./report.js";

/** As `/api/v1/worker/lease` answers it. */
export interface LeaseRecord {
  lease: string;
  leaseMs: number;
  leaseUntil: string;
  timeoutMs: number | null;
  job: LeasedJob;
  payload: unknown;
}

export interface LeasedJob {
  id: string;
  type: string;
  version: number;
  projectId: string;
  lane: string;
  priority: number;
  attempt: number;
  maxAttempts: number;
  failures: number;
  createdAt: string;
  wakes: number;
  answer: Answer | null;
}

export class Held {
  readonly record: LeaseRecord;
  readonly #controller = new AbortController();
  /** It is ours until then by our own clock, which does not jump. */
  goodUntil: number;
  /** `over`: there is nothing more to say about it. */
  stage: "working" | "settling" | "over" = "working";

  constructor(record: LeaseRecord) {
    this.record = record;
    this.goodUntil = performance.now() + record.leaseMs;
  }

  get lease(): string {
    return this.record.lease;
  }

  get leaseMs(): number {
    return this.record.leaseMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason stays. */
  interrupt(why: Why, detail?: string): void {
    if (!this.signal.aborted) this.#controller.abort(new Interrupted(why, detail));
  }

  about(during: About["during"]): About {
    return { during, jobId: this.record.job.id, type: this.record.job.type };
  }
}
