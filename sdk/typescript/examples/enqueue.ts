/**
 * Registers the job type `mail.send`, enqueues a job and waits for its end. Takes a key that may operate:
 *
 *     npm run build:all && BATON_KEY=bk_… node build/examples/enqueue.js ada@example.com
 */

import { BatonError, Client } from "@baton/sdk";

const client = new Client();
const [to = "ada@example.com"] = process.argv.slice(2);

await client.putJobType("mail.send", {
  summary: "Sends a mail",
  maxAttempts: 3,
  lease: "30s",
  timeout: "60s",
  // Not more than two at once to the same address.
  lane: { key: "mail:{payload.to}", limit: 2 },
});

try {
  const job = await client.enqueue({ type: "mail.send", projectId: "shop", payload: { to, subject: "Hello" } });
  console.log(job.id, job.dedupe);
  const { state, result, error } = await client.wait(job.id, { timeoutMs: 60_000 });
  console.log(state, result ?? error);
} catch (error) {
  if (!(error instanceof BatonError)) throw error;
  console.error(`${error.code}: ${error.detail}`, error.hint ?? "");
  process.exitCode = 1;
}
