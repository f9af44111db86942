/** Why a job's signal was aborted. */

export type Why =
  /** Somebody wants the job to end. It is still ours: stop, and return or throw as you like. */
  | "cancelled"
  /** It is no longer ours, and may already be somebody else's: stop. Nothing that is said about it counts. */
  | "lost"
  /** The worker stops, and its time is over: stop. The job is given back. */
  | "stopping";

const SAID: Record<Why, string> = {
  cancelled: "the job was cancelled",
  lost: "the lease on the job was lost",
  stopping: "the worker stops",
};

/** The reason of `job.signal`, and so what `job.signal.throwIfAborted()` throws. */
export class Interrupted extends Error {
  override readonly name: string = "Interrupted";
  readonly why: Why;

  constructor(why: Why, detail?: string) {
    super(detail ? `${SAID[why]}: ${detail}` : SAID[why]);
    this.why = why;
  }
}
