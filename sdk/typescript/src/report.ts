/** Telling whoever runs a worker what went wrong where no handler sees it. */

export interface About {
  /** `job`: a handler crashed, or its lease was lost. */
  during: "lease" | "heartbeat" | "settle" | "progress" | "job";
  jobId?: string;
  type?: string;
}

export type OnError = (error: Error, about: About) => void;

/** One line on standard error: no payload, no result, no key. */
export function toStderr(error: Error, { during, jobId, type }: About): void {
  const job = jobId ? ` ${jobId} (${type})` : "";
  console.error(`baton: ${during}${job}: ${error.name}: ${error.message}`);
}

/** A hook that throws must not take the worker down with it. */
export function guarded(hook: OnError): OnError {
  return (error, about) => {
    try {
      hook(error, about);
    } catch (own) {
      console.error("baton: onError itself failed:", own);
    }
  };
}
