/**
 * Serves the job type `mail.send`. An operator registers it once (see enqueue.ts); a worker's key will do here:
 *
 *     npm run build:all && BATON_KEY=bk_… node build/examples/worker.js
 */

import { Fail, Worker } from "@baton/sdk";

interface Mail {
  to: string;
  subject: string;
}

const worker = new Worker({ name: "mailer-1", concurrency: 5 });

worker.job<Mail, { messageId: string }>("mail.send", async (job) => {
  const { to, subject } = job.payload;
  if (!to.includes("@")) throw new Fail("no_such_address", `${to} is no address`, { class: "deterministic" });
  await job.progress({ percent: 50, note: "written" });
  // Hand `job.signal` to whatever takes long, so that it stops when the job is cancelled or lost; and the
  // job's id to whoever can tell a repetition by it, because work can happen twice.
  const messageId = await deliver({ to, subject, key: job.id, signal: job.signal });
  return { messageId };
});

await worker.run();

async function deliver(mail: Mail & { key: string; signal: AbortSignal }): Promise<string> {
  mail.signal.throwIfAborted();
  console.log(`to ${mail.to}: ${mail.subject}`);
  return `m-${mail.key}`;
}
