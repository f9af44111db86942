export { Client } from "./client.js";
export type { ActOptions, CallOptions, ClientOptions, Page, PageOptions, WaitOptions } from "./client.js";
export { Interrupted } from "./interrupted.js";
export type { Why } from "./interrupted.js";
export type { Job, Progress } from "./job.js";
export { ask, Fail, park, release } from "./outcome.js";
export type { FailClass, FailOptions, LetGo } from "./outcome.js";
export { BatonError } from "./problem.js";
export type { Problem } from "./problem.js";
export { hasEnded } from "./records.js";
export type {
  Answer,
  Batch,
  Breach,
  CancelRule,
  Decision,
  Dedupe,
  DedupeRule,
  EnqueuedJob,
  JobRecord,
  JobType,
  JobTypeSpec,
  LaneRule,
  NewJob,
  Option,
  Priority,
  Question,
  RetryRule,
  State,
} from "./records.js";
export type { About, OnError } from "./report.js";
export type { Pauses } from "./retry.js";
export type { Connection } from "./settings.js";
export type { Retry } from "./wire.js";
export { Worker } from "./worker.js";
export type { Handler, RunOptions, StopOptions } from "./worker.js";
export type { WorkerOptions } from "./worker-options.js";
