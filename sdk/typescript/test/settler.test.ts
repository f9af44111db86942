import assert from "node:assert/strict";
import { test } from "node:test";
import { BatonError } from "../src/index.js";
import { BEAT, LEASE, SETTLE } from "./fake-baton.js";
import { problem } from "./fake-server.js";
import { gate, rig, type Rig } from "./setup.js";

/** Two handlers that wait for their gate while a request waits for more, so that they are settled by themselves. */
async function busy({ baton, worker, run }: Rig, leaseMs = 30_000, result: (lease: string) => object = () => ({})) {
  const done = gate();
  worker.job("mail.send", async (job) => {
    await done.opened;
    return result(job.id);
  });
  void run();
  baton.give("a", { leaseMs });
  baton.give("b", { leaseMs });
  await baton.until(() => baton.of(LEASE).some(({ body }) => body.max === 1));
  return done;
}

test("a settling whose answer got lost is said again, and is settled once", async (t) => {
  const r = await rig(t, { concurrency: 3 });
  const { baton } = r;
  let drops = 2;
  baton.on(SETTLE, (asked) => {
    const reply = baton.settle(asked);
    return drops-- > 0 ? "drop" : reply;
  });
  const done = await busy(r);
  done.open();
  await baton.until(() => baton.of(SETTLE).length === 3);
  const { worker } = r;
  await worker.stop();
  assert.deepEqual(baton.said.map(({ lease }) => lease).sort(), ["a", "b"]);
  assert.deepEqual(r.errors.map(({ about }) => about.during), ["settle"], "told once");
});

test("what went along with a request for jobs is said again by itself if that got lost", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 1 });
  worker.job("mail.send", async () => ({}));
  baton.on(LEASE, async (asked) => {
    const reply = await baton.lease(asked);
    return asked.body.settle ? "drop" : reply;
  });
  void run();
  baton.give("a");
  const repeated = await baton.until(() => baton.of(SETTLE)[0]);
  assert.deepEqual(repeated.body.outcomes, [{ lease: "a", complete: { result: {} } }]);
  await baton.until(() => baton.of(LEASE).at(-1)?.body.waitMs);
  assert.deepEqual(baton.said.map(({ lease, via }) => [lease, via]), [["a", "lease"]]);
});

test("settlings wait for Retry-After and for 5xx to pass", async (t) => {
  const r = await rig(t, { concurrency: 3 });
  let faults = 0;
  r.baton.on(SETTLE, (asked) => {
    faults += 1;
    if (faults === 1) return problem(500, "internal");
    if (faults === 2) return { ...problem(429, "rate_limited"), headers: { "retry-after": "0" } };
    return r.baton.settle(asked);
  });
  (await busy(r)).open();
  await Promise.all([r.baton.outcome("a"), r.baton.outcome("b")]);
});

test("a lease that was lost is told and dropped, and nothing else with it", async (t) => {
  const r = await rig(t, { concurrency: 3 });
  const { baton, errors } = r;
  const late = { lease: "a", code: "lease_lost", detail: "the lease on job job_a is no longer held" };
  baton.on(SETTLE, (asked) => {
    const others = asked.body.outcomes.filter(({ lease }: { lease: string }) => lease !== "a");
    baton.settle({ ...asked, body: { outcomes: others } });
    return { body: { settled: [late, ...others.map(({ lease }: { lease: string }) => ({ lease, settled: "now" }))] } };
  });
  (await busy(r)).open();
  await baton.outcome("b");
  await r.worker.stop();
  assert.equal(errors.length, 1);
  const [{ error, about } = assert.fail()] = errors;
  assert.ok(error instanceof BatonError && error.code === "lease_lost" && error.status === 409);
  assert.deepEqual(about, { during: "settle", jobId: "job_a", type: "mail.send" });
});

test("settlings are given up once the lease cannot be ours any more, not before", async (t) => {
  const r = await rig(t, { concurrency: 3 });
  const { baton, errors } = r;
  baton.script(SETTLE, "drop");
  baton.script(BEAT, "drop");
  const done = await busy(r, 600);
  const startedAt = performance.now();
  done.open();
  await baton.until(() => errors.filter(({ about }) => about.during === "settle" && about.jobId).length === 2);
  assert.ok(performance.now() - startedAt >= 590);
  assert.ok(baton.of(SETTLE).length > 3);
});

test("while beats get through, settlings are never given up", async (t) => {
  const r = await rig(t, { concurrency: 3, pauses: { baseMs: 20, maxMs: 20 } });
  const { baton, errors } = r;
  // Not settled until the lease would have run out twice.
  baton.on(SETTLE, (asked) => (baton.of(BEAT).length < 6 ? "drop" : baton.settle(asked)));
  (await busy(r, 900)).open();
  await Promise.all([baton.outcome("a"), baton.outcome("b")]);
  assert.deepEqual(errors.map(({ about }) => about.jobId), [undefined]);
});

test("one outcome that the server does not take fails its job, and holds up no other", async (t) => {
  const r = await rig(t, { concurrency: 3 });
  const { baton, errors } = r;
  baton.on(SETTLE, (asked) => {
    const bad = asked.body.outcomes.some(({ complete }: { complete?: { result?: { large?: boolean } } }) => complete?.result?.large);
    return bad ? problem(413, "result_too_large", "a result is too large") : baton.settle(asked);
  });
  const done = await busy(r, 30_000, (id) => (id === "job_a" ? { large: true } : { large: false }));
  done.open();
  assert.deepEqual((await baton.outcome("b"))["complete"], { result: { large: false } });
  const { fail } = await baton.outcome("a");
  assert.deepEqual([fail.code, fail.class], ["outcome_refused", "deterministic"]);
  assert.match(fail.message, /result_too_large: a result is too large/);
  assert.ok(errors.some(({ about }) => about.jobId === "job_a"));
});

test("a refusal of what went along does not end the worker", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 1, onError: () => {} });
  worker.job<{ large: boolean }>("mail.send", async (job) => job.payload);
  baton.on(LEASE, (asked) => {
    const large = asked.body.settle?.[0]?.complete?.result?.large;
    return large ? problem(413, "body_too_large") : baton.lease(asked);
  });
  baton.on(SETTLE, (asked) => {
    const large = asked.body.outcomes[0].complete?.result?.large;
    return large ? problem(413, "body_too_large") : baton.settle(asked);
  });
  void run();
  baton.give("a", { payload: { large: true } });
  assert.equal((await baton.outcome("a"))["fail"].code, "outcome_refused");
  baton.give("b", { payload: { large: false } });
  assert.ok((await baton.outcome("b"))["complete"]);
});

test("large results go in requests that the server takes", async (t) => {
  const r = await rig(t, { concurrency: 9 });
  const { baton, worker, run } = r;
  const done = gate();
  const text = "x".repeat(250 * 1024);
  worker.job("mail.send", async () => {
    await done.opened;
    return { text };
  });
  void run();
  const leases = ["a", "b", "c", "d", "e", "f", "g", "h"];
  for (const lease of leases) baton.give(lease);
  await baton.until(() => baton.of(LEASE).some(({ body }) => body.max === 1));
  done.open();
  await Promise.all(leases.map((lease) => baton.outcome(lease)));
  for (const { body } of baton.asked) assert.ok(JSON.stringify(body).length < 1024 * 1024);
});

test("what a handler changes after returning is not said", async (t) => {
  const { baton, worker, run } = await rig(t);
  const result = { n: 1 };
  worker.job("mail.send", async () => {
    setImmediate(() => (result.n = 2));
    return result;
  });
  baton.script(SETTLE, "drop");
  let drops = 3;
  baton.on(SETTLE, (asked) => (drops-- > 0 ? "drop" : baton.settle(asked)));
  void run();
  baton.give("a");
  assert.deepEqual((await baton.outcome("a"))["complete"], { result: { n: 1 } });
});
