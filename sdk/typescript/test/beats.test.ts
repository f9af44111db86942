import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { Interrupted, type Why } from "../src/index.js";
import { BEAT } from "./fake-baton.js";
import { problem } from "./fake-server.js";
import { aborted, gate, rig } from "./setup.js";

const why = (reason: unknown): Why | undefined => (reason instanceof Interrupted ? reason.why : undefined);

test("all leases are beaten together, three times per shortest", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 3 });
  const done = gate();
  worker.job("mail.send", () => done.opened);
  void run();
  baton.give("short", { leaseMs: 900 });
  baton.give("long", { leaseMs: 30_000 });
  await baton.until(() => baton.of(BEAT).length === 1);
  const first = performance.now();
  await baton.until(() => baton.of(BEAT).length === 4);
  assert.ok(performance.now() - first >= 450, "not more often");
  for (const { body } of baton.of(BEAT)) assert.deepEqual([...body.leases].sort(), ["long", "short"]);
  done.open();
  await baton.outcome("short");
});

test("a beat that says cancelled aborts the job, which still settles", async (t) => {
  const { baton, worker, run } = await rig(t);
  let reason: unknown;
  worker.job("mail.send", async (job) => {
    reason = await aborted(job.signal);
    return { cleanedUp: true };
  });
  void run();
  baton.cancelled = ["a"];
  baton.give("a", { leaseMs: 900 });
  assert.deepEqual((await baton.outcome("a"))["complete"], { result: { cleanedUp: true } });
  assert.equal(why(reason), "cancelled");
});

test("a beat that says lost aborts the job, and nothing more is said about it", async (t) => {
  const { baton, worker, run, errors } = await rig(t);
  const ended = gate();
  worker.job<{ wait: boolean }>("mail.send", async (job) => {
    if (!job.payload.wait) return {};
    const reason = await aborted(job.signal);
    ended.open();
    throw reason;
  });
  void run();
  baton.lost = ["a"];
  baton.give("a", { leaseMs: 300, payload: { wait: true } });
  await ended.opened;
  assert.equal(why(errors[0]?.error), "lost");
  assert.equal(errors[0]?.about.jobId, "job_a");
  // Another job goes through all the same; by then "a" would have been said, if it were.
  baton.give("b");
  await baton.outcome("b");
  assert.deepEqual(baton.said.map(({ lease }) => lease), ["b"]);
});

test("if no beat gets through for as long as the lease, the job is taken for lost", async (t) => {
  const { baton, worker, run, errors } = await rig(t);
  baton.script(BEAT, problem(503, "overloaded"), "drop");
  const ended = gate();
  let [reason, tookMs]: [unknown, number] = [undefined, 0];
  const startedAt = performance.now();
  worker.job("mail.send", async (job) => {
    reason = await aborted(job.signal);
    tookMs = performance.now() - startedAt;
    ended.open();
  });
  void run();
  baton.give("a", { leaseMs: 900 });
  await ended.opened;
  assert.equal(why(reason), "lost");
  assert.ok(tookMs >= 899, `${tookMs} ms`);
  assert.ok(baton.of(BEAT).length >= 2, "it was tried again");
  assert.deepEqual(errors.map(({ about }) => about.during), ["heartbeat", "job"], "an outage is told once");
});

test("a beat that hangs does not keep a lease from running out", async (t) => {
  const { baton, worker, run } = await rig(t);
  baton.on(BEAT, async (asked) => {
    await baton.until(() => asked.gone.aborted);
    return {};
  });
  const ended = gate();
  let reason: unknown;
  worker.job("mail.send", async (job) => {
    reason = await aborted(job.signal);
    ended.open();
  });
  void run();
  baton.give("a", { leaseMs: 90 });
  await ended.opened;
  assert.equal(why(reason), "lost");
});

test("a beat that gets through after one that did not keeps the job", async (t) => {
  const { baton, worker, run } = await rig(t);
  baton.script(BEAT, "drop", { body: { lost: [], cancelled: [] } });
  const done = gate();
  worker.job("mail.send", async (job) => {
    await done.opened;
    return { aborted: job.signal.aborted };
  });
  void run();
  baton.give("a", { leaseMs: 900 });
  await baton.until(() => baton.of(BEAT).length === 5);
  done.open();
  assert.deepEqual((await baton.outcome("a"))["complete"], { result: { aborted: false } });
});
