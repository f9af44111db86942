/**
 * A worker to be killed: `node shouter.js DIRECTORY NAME GRACE_MS`.
 *
 * A job's text names a file in the directory, which says who has begun and who has done it. A text that begins
 * with `held` is not done before there is a file of that name with `.go` behind it.
 */

import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "../src/index.js";

const [, , where = ".", who = "", graceMs] = process.argv;
const LOOK_MS = 20;

const worker = new Worker({ name: who, concurrency: 4 });

worker.job<{ text: string }, { text: string }>("shout", async ({ payload: { text }, signal }) => {
  const note = (what: string) => appendFileSync(join(where, text), `${what} ${who}\n`);
  note("begun");
  while (text.startsWith("held") && !existsSync(join(where, `${text}.go`))) {
    if (signal.aborted) {
      note("stopped");
      throw signal.reason;
    }
    await sleep(LOOK_MS);
  }
  note("done");
  return { text: text.toUpperCase() };
});

await worker.run({ graceMs: Number(graceMs) });
