/**
 * A job that asks a person before it goes on, and one that waits for something outside. Neither holds a worker
 * meanwhile. The types `newsletter.send` and `build.watch` must be registered.
 *
 *     npm run build:all && BATON_KEY=bk_… node build/examples/approval.js
 */

import { ask, park, Worker } from "@baton/sdk";

const worker = new Worker({ name: "editor-1" });

worker.job<{ people: number }>("newsletter.send", async (job) => {
  // The handler begins anew with the answer: it is the same attempt of the same job.
  if (!job.answer) {
    return ask({
      prompt: `Send it to ${job.payload.people} people?`,
      responsibility: "editor",
      options: [{ name: "send", label: "Send" }, { name: "stop", effect: "cancel" }],
      withinMs: 4 * 60 * 60 * 1000,
    });
  }
  return { sentTo: job.payload.people, decidedBy: job.answer.by };
});

worker.job<{ buildId: string }>("build.watch", async (job) => {
  const built = await isBuilt(job.payload.buildId, job.signal);
  // Looks again after a minute, or as soon as somebody calls POST /api/v1/jobs/{jobId}/wake.
  return built ? { built } : park({ forMs: 60_000 });
});

await worker.run({ graceMs: 5_000 });

async function isBuilt(buildId: string, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted();
  return buildId.endsWith("0");
}
