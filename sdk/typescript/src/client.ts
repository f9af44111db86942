/**
 * Enqueues jobs and looks after them, for programs that want work done.
 *
 * Elsewhere: doing the work (`worker.ts`).
 */

import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import { BatonError } from "./problem.js";
import type {
  Answer,
  Batch,
  Decision,
  EnqueuedJob,
  JobRecord,
  JobType,
  JobTypeSpec,
  NewJob,
} from "./records.js";
import { hasEnded } from "./records.js";
import { connection, type Connection } from "./settings.js";
import { rest, Wire, type Retry } from "./wire.js";

export interface ClientOptions extends Connection {
  /** How often, and after which pauses, an exchange is repeated that was not answered. */
  retry?: Partial<Retry>;
  /** One exchange takes at most so long; 30 seconds if left out. */
  timeoutMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface ActOptions extends CallOptions {
  /**
   * Made anew for each call if left out, so that repetitions on the wire act once. Give one of your own,
   * such as an order's number, if your program may come back and say the same again.
   */
  idempotencyKey?: string | undefined;
}

export interface WaitOptions extends CallOptions {
  /** For ever, if left out; then a `BatonError` with the code `wait_timeout`. */
  timeoutMs?: number | undefined;
}

export interface Page<T> {
  items: T[];
  /** To go on with; null on the last page. */
  nextCursor: string | null;
}

export interface PageOptions extends CallOptions {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/** Looking at a job again and again: often at first, then calmly. */
const FIRST_LOOK_MS = 50;
const LOOK_MS = 1_000;

export class Client {
  readonly #wire: Wire;

  constructor(options: ClientOptions = {}) {
    const { url, key } = connection(options);
    const { retry, timeoutMs } = options;
    this.#wire = new Wire({ url, key, ...(retry && { retry }), ...(timeoutMs !== undefined && { timeoutMs }) });
  }

  /** Takes a job in; `dedupe` says whether it is a new one. */
  enqueue<Payload extends object = object>(job: NewJob<Payload>, options: ActOptions = {}): Promise<EnqueuedJob<Payload>> {
    return this.#act("/api/v1/jobs", job, options);
  }

  /** Takes 1 to 1000 jobs in, all of them or none. */
  batch(jobs: readonly NewJob[], options: ActOptions = {}): Promise<Batch> {
    return this.#act("/api/v1/jobs/batch", { jobs }, options);
  }

  get<Payload = unknown, Result = unknown>(jobId: string, options: CallOptions = {}): Promise<JobRecord<Payload, Result>> {
    return this.#read(`/api/v1/jobs/${encodeURIComponent(jobId)}`, options);
  }

  /** Ends a job that nobody needs any more, or tells a running one to end if its type can be interrupted. */
  cancel(jobId: string, options: ActOptions & { reason?: string | undefined } = {}): Promise<JobRecord> {
    return this.#act(`/api/v1/jobs/${encodeURIComponent(jobId)}/cancel`, { reason: options.reason }, options);
  }

  /** Wakes a job that has parked itself. One that runs will not miss it. */
  wake(jobId: string, options: ActOptions = {}): Promise<JobRecord> {
    return this.#act(`/api/v1/jobs/${encodeURIComponent(jobId)}/wake`, {}, options);
  }

  /**
   * Waits for the end of a job, whichever it is: look at its `state`. It asks again and again instead of
   * listening, because a key has places for 64 listeners and may have thousands of jobs to wait for.
   */
  async wait<Payload = unknown, Result = unknown>(
    jobId: string,
    { timeoutMs = Infinity, signal }: WaitOptions = {},
  ): Promise<JobRecord<Payload, Result>> {
    const end = performance.now() + timeoutMs;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LOOK_MS, pauseMs * 1.5)) {
      const job = await this.get<Payload, Result>(jobId, { signal });
      if (hasEnded(job)) return job;
      const leftMs = end - performance.now();
      if (leftMs <= 0) {
        const detail = `job ${jobId} is still ${job.state} after ${timeoutMs} ms`;
        throw new BatonError({ status: 0, code: "wait_timeout", detail });
      }
      await rest(Math.min(leftMs, pauseMs * (0.5 + Math.random() / 2)), signal);
    }
  }

  /** Registers a job type. Saying the same again changes nothing; anything else makes a new version. */
  putJobType(type: string, spec: JobTypeSpec, { signal }: CallOptions = {}): Promise<JobType> {
    return this.#wire.call({ method: "PUT", path: `/api/v1/job-types/${encodeURIComponent(type)}`, body: spec, signal });
  }

  getJobType(type: string, options: CallOptions = {}): Promise<JobType> {
    return this.#read(`/api/v1/job-types/${encodeURIComponent(type)}`, options);
  }

  async listJobTypes({ cursor, limit, signal }: PageOptions = {}): Promise<Page<JobType>> {
    const path = `/api/v1/job-types${query({ cursor, limit })}`;
    const page = await this.#read<{ jobTypes: JobType[]; nextCursor: string | null }>(path, { signal });
    return { items: page.jobTypes, nextCursor: page.nextCursor };
  }

  /** What people are asked: all of it, or what one job (`subject`) asks. */
  async listDecisions(
    options: PageOptions & { subject?: string; state?: Decision["state"]; projectId?: string } = {},
  ): Promise<Page<Decision>> {
    const { signal, ...filters } = options;
    const path = `/api/v1/decisions${query(filters)}`;
    const page = await this.#read<{ decisions: Decision[]; nextCursor: string | null }>(path, { signal });
    return { items: page.decisions, nextCursor: page.nextCursor };
  }

  /** Answers a decision by one of its options. Only the first answer counts. */
  resolveDecision(
    decisionId: string,
    answer: { option: string } & Pick<Answer, "comment" | "data">,
    options: ActOptions = {},
  ): Promise<Decision> {
    return this.#act(`/api/v1/decisions/${encodeURIComponent(decisionId)}/resolve`, answer, options);
  }

  #read<T>(path: string, { signal }: CallOptions): Promise<T> {
    return this.#wire.call({ method: "GET", path, signal });
  }

  #act<T>(path: string, body: object, { idempotencyKey = randomUUID(), signal }: ActOptions): Promise<T> {
    return this.#wire.call({ method: "POST", path, body, idempotencyKey, signal });
  }
}

function query(parameters: Record<string, string | number | undefined>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString();
  return text && `?${text}`;
}
