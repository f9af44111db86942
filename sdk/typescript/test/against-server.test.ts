/**
 * The same against a real server: BATON_URL, BATON_KEY (a worker's) and BATON_ADMIN_KEY. Skipped without them.
 *
 * Each test has a job type and a project of its own, so that nothing that was left behind gets in its way.
 */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, BatonError, Client, Fail, Interrupted, park, release, Worker } from "../src/index.js";
import type { Handler, JobRecord, JobTypeSpec, WorkerOptions } from "../src/index.js";
import { aborted, gate } from "./setup.js";

const { BATON_URL: url, BATON_KEY: key, BATON_ADMIN_KEY: adminKey } = process.env;
const skip = url && key && adminKey ? false : "BATON_URL, BATON_KEY and BATON_ADMIN_KEY are not set";
const timeout = 60_000;

type Handle = Handler<Record<string, unknown>, object | void>;

async function setUp(t: TestContext, spec: JobTypeSpec, handler: Handle, options: WorkerOptions = {}) {
  const client = new Client({ url: url ?? "", key: adminKey ?? "" });
  const name = `sdk-ts-${randomBytes(6).toString("hex")}`;
  const type = `sdk.${name}`;
  const lane = { key: `${name}:{payload.lane}`, limit: null };
  await client.putJobType(type, { summary: "a test", lease: "3s", lane, ...spec });
  const errors: Error[] = [];
  const onError = (error: Error) => void errors.push(error);
  const worker = new Worker({ url: url ?? "", key: key ?? "", name, onError, ...options });
  worker.job(type, handler);
  const running = worker.run({ signals: [] });
  running.catch(() => undefined);
  t.after(async () => {
    await worker.stop({ graceMs: 1_000 });
    await running;
  });
  const enqueue = (payload: object = {}) => client.enqueue({ type, projectId: name, payload: { lane: "one", ...payload } });
  const end = (id: string) => client.wait(id, { timeoutMs: 30_000 });
  return { client, type, name, worker, running, errors, enqueue, end };
}

/** Asks until it holds: the only way to see a state that is not an end. */
async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (let tries = 0; tries < 300; tries += 1) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await sleep(100);
  }
  return assert.fail("it never held");
}

test("jobs are done, with their results", { skip, timeout }, async (t) => {
  const { client, type, name, enqueue, end } = await setUp(t, {}, async (job) => ({ double: Number(job.payload["n"]) * 2 }));
  const one = await enqueue({ n: 21 });
  assert.equal(one.dedupe, "enqueued");
  const done = await end(one.id);
  assert.deepEqual([done.state, done.result, done.attempts], ["completed", { double: 42 }, 1]);

  const payloads = Array.from({ length: 25 }, (_, n) => ({ n, lane: `l${n}` }));
  const batch = await client.batch(payloads.map((payload) => ({ type, projectId: name, payload })));
  assert.equal(batch.enqueued, 25);
  const ends = await Promise.all(batch.jobs.map(({ jobId }) => end(jobId)));
  assert.deepEqual(ends.map(({ result }) => (result as { double: number }).double), payloads.map(({ n }) => n * 2));
});

test("the same enqueuing twice is one job", { skip, timeout }, async (t) => {
  const { client, type, name } = await setUp(t, {}, async () => ({}));
  const job = { type, projectId: name, payload: { lane: "one" } };
  const [first, again] = [await client.enqueue(job, { idempotencyKey: name }), await client.enqueue(job, { idempotencyKey: name })];
  assert.equal(first.id, again.id);
});

test("job types are registered in versions", { skip, timeout }, async (t) => {
  const { client, type } = await setUp(t, {}, async () => ({}));
  const { version } = await client.getJobType(type);
  const changed = await client.putJobType(type, { summary: "another" });
  assert.equal(changed.version, version + 1);
  assert.equal((await client.putJobType(type, { summary: "another" })).version, changed.version);
  let [cursor, found]: [string | undefined, boolean] = [undefined, false];
  do {
    const page = await client.listJobTypes({ cursor, limit: 200 });
    found ||= page.items.some((item) => item.type === type);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  assert.ok(found);
});

test("failures are tried again by their class", { skip, timeout }, async (t) => {
  const retry = { base: "100ms", max: "200ms", jitter: false, maxFailures: 3 };
  const { enqueue, end, errors } = await setUp(t, { maxAttempts: 3, retry }, async (job) => {
    switch (job.payload["how"]) {
      case "late":
        if (job.attempt < 3) throw new Fail("smtp_refused", "450", { class: "transient" });
        return { attempt: job.attempt, failures: job.failures };
      case "never":
        throw new Fail("smtp_refused", "450", { class: "transient" });
      case "deterministic":
        throw new Fail("no_such_address", "nobody there", { class: "deterministic" });
      case "fatal":
        throw new Fail("no_licence", "ended", { class: "fatal" });
      default:
        throw new RangeError("a bug");
    }
  });
  const how = async (word: string): Promise<JobRecord> => end((await enqueue({ how: word, lane: word })).id);
  const [late, never, deterministic, fatal, crash] = await Promise.all(
    ["late", "never", "deterministic", "fatal", "crash"].map(how),
  );
  assert.deepEqual([late?.state, late?.result], ["completed", { attempt: 3, failures: 2 }]);
  assert.deepEqual([never?.state, never?.attempts], ["failed", 3]);
  for (const [job, error] of [
    [deterministic, "no_such_address: nobody there"],
    [fatal, "no_licence: ended"],
    [crash, "crash: RangeError: a bug"],
  ] as const) {
    assert.deepEqual([job?.state, job?.attempts, job?.error], ["failed", 1, error]);
  }
  assert.deepEqual(errors.map((error) => error.message), ["a bug"]);
});

test("a parked job goes on when it is woken, and when its time is over", { skip, timeout }, async (t) => {
  const { client, enqueue, end } = await setUp(t, {}, async (job) => {
    const forMs = job.payload["forMs"] as number | undefined;
    // Only a wake-up changes `wakes`; what was parked for a time says so in its second coming.
    if (forMs === undefined) return job.wakes === 0 ? park() : { wakes: job.wakes, attempt: job.attempt };
    if (seen.has(job.id)) return { attempt: job.attempt };
    seen.add(job.id);
    return park({ forMs });
  });
  const seen = new Set<string>();
  const [woken, timed] = [await enqueue({ lane: "woken" }), await enqueue({ lane: "timed", forMs: 200 })];
  await until(async () => (await client.get(woken.id)).state === "awaiting_tool");
  await client.wake(woken.id);
  assert.deepEqual((await end(woken.id)).result, { wakes: 1, attempt: 1 });
  assert.deepEqual((await end(timed.id)).result, { attempt: 1 });
});

test("a question waits for its answer, and an option can cancel", { skip, timeout }, async (t) => {
  const { client, enqueue, end } = await setUp(t, {}, async (job) => {
    if (job.answer) return { chose: job.answer.option, data: job.answer.data, attempt: job.attempt };
    return ask({ prompt: "Send it?", options: [{ name: "send" }, { name: "stop", effect: "cancel" }] });
  });
  const decide = async (jobId: string, answer: { option: string; data?: unknown }) => {
    const decision = await until(async () => (await client.listDecisions({ subject: jobId, state: "open" })).items[0]);
    assert.equal(decision.prompt, "Send it?");
    return client.resolveDecision(decision.id, answer);
  };
  const [sent, stopped] = [await enqueue({ lane: "a" }), await enqueue({ lane: "b" })];
  await decide(sent.id, { option: "send", data: { to: 4000 } });
  await decide(stopped.id, { option: "stop" });
  assert.deepEqual((await end(sent.id)).result, { chose: "send", data: { to: 4000 }, attempt: 1 });
  assert.equal((await end(stopped.id)).state, "cancelled");
});

test("a running job that can be interrupted is told, and ends as cancelled", { skip, timeout }, async (t) => {
  const begun = gate();
  const reasons: unknown[] = [];
  const cancel = { strategy: "interrupt_turn", grace: "5s" } as const;
  const { client, enqueue, end } = await setUp(t, { cancel }, async (job) => {
    begun.open();
    reasons.push(await aborted(job.signal));
    throw job.signal.reason;
  });
  const { id } = await enqueue();
  await begun.opened;
  await client.cancel(id, { reason: "no need" });
  const ended = await end(id);
  assert.deepEqual([ended.state, ended.cancelReason, ended.error], ["cancelled", "no need", null]);
  assert.equal((reasons[0] as Interrupted).why, "cancelled");
});

test("a running job that cannot be interrupted is lost when it is cancelled", { skip, timeout }, async (t) => {
  const [begun, ended] = [gate(), gate()];
  const reasons: unknown[] = [];
  const { client, enqueue, errors } = await setUp(t, {}, async (job) => {
    begun.open();
    reasons.push(await aborted(job.signal));
    ended.open();
  });
  const { id } = await enqueue();
  await begun.opened;
  assert.equal((await client.cancel(id)).state, "cancelled");
  await ended.opened;
  assert.equal((reasons[0] as Interrupted).why, "lost");
  assert.ok(errors.some((error) => error instanceof Interrupted));
});

test("heartbeats keep a job that takes longer than its lease", { skip, timeout }, async (t) => {
  const { enqueue, end } = await setUp(t, { lease: "1s" }, async (job) => {
    await sleep(2_500, undefined, { signal: job.signal });
    return { attempt: job.attempt };
  });
  assert.deepEqual((await end((await enqueue()).id)).result, { attempt: 1 });
});

test("progress is shown on the job", { skip, timeout }, async (t) => {
  const [told, looked] = [gate(), gate()];
  const { client, enqueue, end } = await setUp(t, {}, async (job) => {
    await job.progress({ percent: 40, note: "4 of 10 pages" });
    told.open();
    await looked.opened;
  });
  const { id } = await enqueue();
  await told.opened;
  const { progress } = await client.get(id);
  assert.deepEqual([progress?.percent, progress?.note], [40, "4 of 10 pages"]);
  looked.open();
  assert.equal((await end(id)).state, "completed");
});

test("a job that is released comes again, without a failure", { skip, timeout }, async (t) => {
  let times = 0;
  const { enqueue, end } = await setUp(t, {}, async (job) => {
    times += 1;
    return times === 1 ? release() : { failures: job.failures };
  });
  assert.deepEqual((await end((await enqueue()).id)).result, { failures: 0 });
});

test("a worker that stops gives back what it does not finish", { skip, timeout }, async (t) => {
  const begun = gate();
  const { client, worker, running, type, enqueue, end } = await setUp(t, {}, async (job) => {
    begun.open();
    await aborted(job.signal);
    throw job.signal.reason;
  });
  const { id } = await enqueue();
  await begun.opened;
  await worker.stop({ graceMs: 1 });
  await running;
  const given = await client.get(id);
  // Jobs never go back to the queue: one that was given back waits for its next attempt, which is due.
  assert.deepEqual([given.state, given.waitingFor, given.failures], ["awaiting_tool", "retry", 0]);
  const other = new Worker({ url: url ?? "", key: key ?? "" }).job(type, async () => ({ by: "another" }));
  const working = other.run({ signals: [] });
  assert.deepEqual((await end(id)).result, { by: "another" });
  await other.stop();
  await working;
});

test("a type that nobody registered ends the worker", { skip, timeout }, async () => {
  const worker = new Worker({ url: url ?? "", key: key ?? "" }).job(`sdk.none-${randomBytes(6).toString("hex")}`, async () => ({}));
  await assert.rejects(worker.run({ signals: [] }), (error) => error instanceof BatonError && error.code === "unknown_job_type");
});
