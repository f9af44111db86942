/** A fake server and a worker for it, both gone after the test. */

import type { TestContext } from "node:test";
import { Worker, type About, type WorkerOptions } from "../src/index.js";
import { FakeBaton } from "./fake-baton.js";

export interface Rig {
  baton: FakeBaton;
  worker: Worker;
  errors: { error: Error; about: About }[];
  /** Runs the worker without listening to signals. */
  run: () => Promise<void>;
}

export async function rig(t: TestContext, options: WorkerOptions = {}): Promise<Rig> {
  const baton = await new FakeBaton().start();
  let worker: Worker | undefined;
  t.after(async () => {
    await worker?.stop({ graceMs: 0 });
    await baton.stop();
  });
  const errors: Rig["errors"] = [];
  const made = new Worker({
    url: baton.url,
    key: "bk_test",
    name: "tester",
    concurrency: 2,
    pauses: { baseMs: 1, maxMs: 5 },
    onError: (error, about) => {
      errors.push({ error, about });
      baton.changed();
    },
    ...options,
  });
  worker = made;
  const run = () => {
    const running = made.run({ signals: [] });
    // Tests that expect it to reject say so; the others must not be ended by it.
    running.catch(() => undefined);
    return running;
  };
  return { baton, worker: made, errors, run };
}

/** Resolves when the signal is aborted, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason));
  });
}

export function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}
