import assert from "node:assert/strict";
import { test } from "node:test";
import { Interrupted, park } from "../src/index.js";
import { LEASE } from "./fake-baton.js";
import { aborted, gate, rig } from "./setup.js";

test("a worker that waits hangs up and is done", async (t) => {
  const { baton, worker, run } = await rig(t);
  worker.job("mail.send", async () => ({}));
  const running = run();
  const waiting = await baton.until(() => baton.of(LEASE)[0]);
  await worker.stop();
  await running;
  await baton.until(() => waiting.gone.aborted);
  assert.equal(baton.asked.length, 1);
});

test("what runs may finish, and nothing new is leased", async (t) => {
  const { baton, worker, run } = await rig(t);
  const done = gate();
  worker.job("mail.send", async (job) => {
    await done.opened;
    return { aborted: job.signal.aborted };
  });
  const running = run();
  baton.give("a");
  await baton.until(() => baton.of(LEASE).length === 2);
  const stopping = worker.stop({ graceMs: 60_000 });
  const asked = baton.of(LEASE).length;
  done.open();
  await stopping;
  await running;
  assert.deepEqual(baton.said, [{ lease: "a", via: "settle", complete: { result: { aborted: false } } }]);
  assert.equal(baton.of(LEASE).length, asked);
});

test("when the grace is over, what is left is aborted and given back", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 4 });
  const reasons: unknown[] = [];
  worker.job<{ how: string }>("mail.send", async (job) => {
    if (job.payload.how === "deaf") return new Promise<object>(() => {});
    reasons.push(await aborted(job.signal));
    if (job.payload.how === "parks") return park({ forMs: 1 });
    throw job.signal.reason;
  });
  const running = run();
  for (const how of ["listens", "deaf", "parks"]) baton.give(how, { payload: { how } });
  await baton.until(() => baton.of(LEASE).some(({ body }) => body.max === 1));
  await worker.stop({ graceMs: 1 });
  await running;
  assert.deepEqual(reasons.map((reason) => reason instanceof Interrupted && reason.why), ["stopping", "stopping"]);
  const said = Object.fromEntries(baton.said.map(({ lease, via, ...outcome }) => [lease, outcome]));
  assert.deepEqual(said, { listens: { release: {} }, deaf: { release: {} }, parks: { park: { forMs: 1, seen: 0 } } });
});

test("what is handed out while it stops is given back untouched", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 1 });
  let begun = 0;
  worker.job("mail.send", async () => {
    begun += 1;
  });
  baton.on(LEASE, (asked) => {
    // The request that settles is not hung up on; what it brings comes too late.
    if (asked.body.settle) {
      void worker.stop();
      baton.give("late");
    }
    return baton.lease(asked);
  });
  const running = run();
  baton.give("a");
  await running;
  assert.equal(begun, 1);
  assert.deepEqual(baton.said.at(-1), { lease: "late", via: "settle", release: {} });
});

test("stopping again can only shorten the grace", async (t) => {
  const { baton, worker, run } = await rig(t);
  worker.job("mail.send", (job) => aborted(job.signal).then(() => undefined));
  const running = run();
  baton.give("a");
  await baton.until(() => baton.of(LEASE).length === 2);
  const first = worker.stop({ graceMs: 60_000 });
  assert.equal(worker.stop({ graceMs: 1 }), first);
  await first;
  await running;
});

test("a worker that never ran is stopped at once, and runs no more", async (t) => {
  const { worker, run } = await rig(t);
  worker.job("mail.send", async () => ({}));
  await worker.stop();
  await assert.rejects(run(), /runs once/);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`${signal} stops a worker gracefully, a second one at once`, async (t) => {
    const { baton, worker } = await rig(t);
    const before = process.listenerCount(signal);
    const reasons: unknown[] = [];
    worker.job("mail.send", async (job) => {
      reasons.push(await aborted(job.signal));
      throw job.signal.reason;
    });
    const running = worker.run({ graceMs: 60_000 });
    baton.give("a");
    const waiting = await baton.until(() => baton.of(LEASE)[1]);
    process.emit(signal);
    await baton.until(() => waiting.gone.aborted);
    assert.deepEqual(reasons, []);
    process.emit(signal);
    await running;
    assert.equal(reasons.length, 1);
    assert.deepEqual((await baton.outcome("a"))["release"], {});
    assert.equal(process.listenerCount(signal), before);
  });
}
