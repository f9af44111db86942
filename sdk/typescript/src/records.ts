/** What the server says about jobs, job types and decisions, and what it is told to make them. */

export type State =
  | "received"
  | "queued"
  | "executing"
  | "awaiting_tool"
  | "awaiting_user_confirmation"
  | "completed"
  | "failed"
  | "cancelled";

export type Priority = "interactive" | "background" | number;

export type Dedupe = "enqueued" | "follow_up" | "already_queued" | "dropped" | "merged" | "same_message";

/** A job that is to be taken in. */
export interface NewJob<Payload extends object = object> {
  type: string;
  projectId: string;
  payload?: Payload | undefined;
  priority?: Priority | undefined;
  sourceSessionId?: string | undefined;
  notBefore?: Date | string | undefined;
  deadline?: Date | string | undefined;
  messageId?: string | undefined;
}

/** A job as the server shows it. */
export interface JobRecord<Payload = unknown, Result = unknown> {
  id: string;
  type: string;
  version: number;
  projectId: string;
  sourceSessionId: string | null;
  state: State;
  priority: "interactive" | "background";
  priorityNumber: number;
  dedupeKey: string | null;
  payload: Payload;
  result: Result | null;
  /** `code: message`, if it failed. */
  error: string | null;
  /** The same of the attempt before, if it is or was tried again. */
  lastError: string | null;
  attempts: number;
  maxAttempts: number;
  failures: number;
  maxFailures: number;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  cancelRequestedAt: string | null;
  cancelReason: string | null;
  runningContext: { threadId: string | null; turnId: string | null };
  lane: string;
  waitingFor: "retry" | "tool" | "person" | null;
  dueAt: string | null;
  progress: { percent?: number | null; note?: string | null } | null;
  question: unknown;
  requeuedFrom: string | null;
  requeuedAs: string | null;
  scheduleId: string | null;
}

export type EnqueuedJob<Payload = unknown> = JobRecord<Payload> & { dedupe: Dedupe };

export interface Batch {
  /** In the order of the request. */
  jobs: { jobId: string; dedupe: Dedupe; state: State }[];
  /** How many of them are new. */
  enqueued: number;
}

/** What a job type says; lengths of time are texts such as `30s` or `5m`. */
export interface JobTypeSpec {
  summary?: string;
  /** Of jobs that say nothing; `background`, if left out. */
  priority?: Priority;
  /** Executions of a job, crashes included. */
  maxAttempts?: number;
  /** How long a lease lasts without a heartbeat; `30s`, if left out. */
  lease?: string;
  /** How long one execution may take, or `never`. */
  timeout?: string;
  /** Where its jobs wait; the lane of their project, one at a time, if left out. */
  lane?: LaneRule;
  dedupe?: DedupeRule;
  retry?: RetryRule;
  cancel?: CancelRule;
  payloadSchema?: object;
  resultSchema?: object;
}

export interface LaneRule {
  /** Its name, made from a job: `mail:{payload.to}`. */
  key: string;
  /** Jobs at the same time; any number, if left out or null. */
  limit?: number | null;
  /** Jobs that may wait in it; any number, if left out or null. */
  depth?: number | null;
}

export interface DedupeRule {
  mode: "single_flight" | "drop_duplicate" | "merge_duplicate";
  /** What duplicates have in common: `{payload.orderId}`. */
  key: string;
}

export interface RetryRule {
  /** After the first failure, doubled with each further one. */
  base?: string;
  max?: string;
  jitter?: boolean;
  /** Failures that a job may report; as many as attempts, if left out. */
  maxFailures?: number | null;
}

export interface CancelRule {
  /** `interrupt_turn` tells a running job to end; `mark_canceled` (the default) ends it at once. */
  strategy: "mark_canceled" | "interrupt_turn";
  /** How long an interrupted job may take to end. */
  grace?: string;
}

/** One version of a job type. What is null is as the server is configured. */
export interface JobType {
  type: string;
  version: number;
  summary: string;
  priority: Priority;
  maxAttempts: number | null;
  lease: string;
  timeout: string | null;
  lane: LaneRule | null;
  dedupe: DedupeRule | null;
  retry: RetryRule;
  cancel: CancelRule;
  payloadSchema: object | null;
  resultSchema: object | null;
}

/** What people are asked. What is not named here is shown to them as evidence. */
export interface Question {
  prompt: string;
  /** Whose answer counts; any operator's, if left out. */
  responsibility?: string;
  /** `confirm` and `decline`, if left out. */
  options?: Option[];
  withinMs?: number;
  /** What happens if nobody answers within that time; `fail`, if left out. */
  onBreach?: Breach;
  [evidence: string]: unknown;
}

export interface Option {
  name: string;
  label?: string;
  /** What it does to the job: it goes on (the default), is cancelled, or fails. */
  effect?: "go_on" | "cancel" | "fail";
}

export type Breach =
  | "wait"
  | "cancel"
  | "fail"
  | { choose: string }
  | { escalate: { to: string; withinMs?: number; then?: Breach } };

export interface Decision {
  id: string;
  state: "open" | "resolved" | "expired" | "withdrawn";
  kind: string;
  /** What waits for it, such as a job's id. */
  subject: string;
  projectId: string;
  prompt: string;
  responsibility: string | null;
  options: Option[];
  evidence: unknown;
  openedAt: string;
  deadlineAt: string | null;
  onBreach: Breach;
  overdue: boolean;
  resolution: Answer | null;
}

/** What a person said. */
export interface Answer {
  /** The name of the option that was chosen. */
  option?: string | null;
  by?: string;
  comment?: string | null;
  data?: unknown;
  [more: string]: unknown;
}

const ENDED: ReadonlySet<State> = new Set<State>(["completed", "failed", "cancelled"]);

export function hasEnded(job: { state: State }): boolean {
  return ENDED.has(job.state);
}
