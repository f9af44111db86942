/**
 * Workers and servers that are killed: nothing is lost, and nothing is completed twice. Skipped without BATON_BIN.
 *
 * Every test has a server of its own, and workers that are processes (`shouter.ts`).
 */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { JobRecord } from "../src/index.js";
import { BIN, end, PATIENCE_MS, RealServer, until } from "./real-server.js";

const skip = BIN ? false : "BATON_BIN is not set";
const SHOUTER = fileURLToPath(new URL("./shouter.js", import.meta.url));

type Shout = JobRecord<{ text: string }>;

async function setUp(t: TestContext, lease: string) {
  const server = new RealServer();
  const workers: ChildProcess[] = [];
  t.after(async () => {
    await Promise.all(workers.map(end));
    await server.close();
  });
  await server.start();
  const key = server.workerKey();
  const where = join(server.directory, "shouts");
  mkdirSync(where);
  const retry = { base: "50ms", max: "100ms", jitter: false };
  await server.client.putJobType("shout", { lease, maxAttempts: 10, retry, lane: { key: "shouts", limit: null } });

  const work = (name: string, graceMs = PATIENCE_MS) => {
    const env = { ...process.env, BATON_URL: server.url, BATON_KEY: key };
    // What it says of the trouble that it is given is not of interest while all goes well.
    const log = openSync(join(server.directory, `${name}.log`), "w");
    const worker = spawn(process.execPath, [SHOUTER, where, name, String(graceMs)], { env, stdio: ["ignore", log, log] });
    closeSync(log);
    workers.push(worker);
    return worker;
  };
  const enqueue = async (...texts: string[]) => {
    const batch = texts.map((text) => ({ type: "shout", projectId: "demo", payload: { text } }));
    return (await server.client.batch(batch)).jobs.map(({ jobId }) => jobId);
  };
  const noted = (text: string) => {
    const path = join(where, text);
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  };
  const untilNoted = (text: string, note: string) => until(() => noted(text).includes(note), `${note}: ${text}`);
  const go = (...texts: string[]) => texts.forEach((text) => writeFileSync(join(where, `${text}.go`), ""));
  const ended = (id: string) => server.client.wait<{ text: string }>(id, { timeoutMs: PATIENCE_MS });

  const checkCompletedOnce = async (ids: string[]): Promise<Shout[]> => {
    const jobs = await Promise.all(ids.map(ended));
    const times = await server.completions();
    for (const { id, state, result, failures, attempts, payload: { text } } of jobs) {
      assert.deepEqual([state, result, failures], ["completed", { text: text.toUpperCase() }, 0]);
      assert.equal(times.get(id), 1, text);
      // Whatever was begun was an attempt, and the last one is the one that counts.
      assert.ok(noted(text).filter((note) => note.startsWith("begun")).length <= attempts, text);
      assert.match(noted(text).at(-1) ?? "", /^done /, text);
    }
    return jobs;
  };
  return { server, work, enqueue, noted, untilNoted, go, ended, checkCompletedOnce };
}

async function stopped(worker: ChildProcess): Promise<void> {
  const exit = once(worker, "exit", { signal: AbortSignal.timeout(PATIENCE_MS) });
  worker.kill("SIGTERM");
  assert.deepEqual(await exit, [0, null]);
}

test("what a killed worker had begun is done by another", { skip }, async (t) => {
  const { work, enqueue, noted, untilNoted, go, checkCompletedOnce } = await setUp(t, "2s");
  const ids = await enqueue("held-1", "held-2", "quick-1", "quick-2");
  const first = work("first");
  await untilNoted("held-1", "begun first");
  await end(first);
  go("held-1", "held-2");
  work("second");
  const [job] = await checkCompletedOnce(ids);
  assert.equal(job?.attempts, 2);
  assert.deepEqual(noted("held-1"), ["begun first", "begun second", "done second"]);
});

test("what ends while the server is away is settled when it is back", { skip }, async (t) => {
  const { server, work, enqueue, untilNoted, go, checkCompletedOnce } = await setUp(t, "60s");
  work("first");
  for (const n of [1, 2]) {
    const ids = await enqueue(`held-${n}`);
    await untilNoted(`held-${n}`, "begun first");
    await server.kill();
    go(`held-${n}`);
    await untilNoted(`held-${n}`, "done first");
    await server.start();
    ids.push(...(await enqueue(`quick-${n}`)));
    // The lease has outlived the server that gave it, so nobody has begun anew.
    assert.deepEqual((await checkCompletedOnce(ids)).map(({ attempts }) => attempts), [1, 1]);
  }
});

test("a worker that waits waits for the next server too", { skip }, async (t) => {
  const { server, work, enqueue, ended, checkCompletedOnce } = await setUp(t, "2s");
  work("first");
  const ids = await enqueue("quick-0");
  for (const n of [1, 2, 3]) {
    // It has nothing to do now, and asks for more.
    await ended(ids.at(-1) ?? "");
    await server.kill();
    await server.start();
    ids.push(...(await enqueue(`quick-${n}`)));
  }
  await checkCompletedOnce(ids);
});

test("a server that is killed under load loses nothing", { skip }, async (t) => {
  const { server, work, enqueue, noted, checkCompletedOnce } = await setUp(t, "2s");
  work("first");
  const texts = Array.from({ length: 60 }, (_, n) => `quick-${n}`);
  const ids = await enqueue(...texts);
  for (const enough of [5, 25]) {
    await until(() => texts.filter((text) => noted(text).length > 0).length >= enough, `${enough} jobs are begun`);
    await server.kill();
    await server.start();
  }
  await checkCompletedOnce(ids);
});

test("what is lost while the server is away is stopped, and begun anew", { skip }, async (t) => {
  const { server, work, enqueue, noted, untilNoted, go, checkCompletedOnce } = await setUp(t, "1s");
  work("first");
  const ids = await enqueue("held-1");
  await untilNoted("held-1", "begun first");
  await server.kill();
  await untilNoted("held-1", "stopped first");
  await server.start();
  await until(() => noted("held-1").filter((note) => note === "begun first").length === 2, "it is begun anew");
  go("held-1");
  assert.equal((await checkCompletedOnce(ids))[0]?.attempts, 2);
});

test("a worker that is told to stop finishes what it can", { skip }, async (t) => {
  const { server, work, enqueue, untilNoted, go, checkCompletedOnce } = await setUp(t, "30s");
  const ids = await enqueue("held-1");
  const first = work("first");
  await untilNoted("held-1", "begun first");
  const stopping = stopped(first);
  go("held-1");
  await stopping;
  // It was settled before the worker ended.
  assert.equal((await server.client.get(ids[0] ?? "")).state, "completed");
  assert.equal((await checkCompletedOnce(ids))[0]?.attempts, 1);
});

test("a worker that is told to stop gives back the rest", { skip }, async (t) => {
  const { server, work, enqueue, untilNoted, go, checkCompletedOnce } = await setUp(t, "30s");
  const ids = await enqueue("held-1", "held-2");
  const first = work("first", 0);
  await untilNoted("held-1", "begun first");
  await stopped(first);
  for (const id of ids) {
    const { state, waitingFor, attempts, failures } = await server.client.get(id);
    assert.deepEqual([state, waitingFor, attempts, failures], ["awaiting_tool", "retry", 1, 0]);
  }
  go("held-1", "held-2");
  work("second");
  // Now, and not when their leases would have run out.
  assert.deepEqual((await checkCompletedOnce(ids)).map(({ attempts }) => attempts), [2, 2]);
});

test("a worker ends although the server is away", { skip }, async (t) => {
  const { server, work, enqueue, ended } = await setUp(t, "30s");
  const first = work("first", 0);
  await ended((await enqueue("quick-1"))[0] ?? "");
  await server.kill();
  await stopped(first);
});
