import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, Fail, park, release } from "../src/index.js";
import { LEASE, PROGRESS } from "./fake-baton.js";
import { problem } from "./fake-server.js";
import { aborted, gate, rig } from "./setup.js";

test("a job is handed to its handler, and what that returns completes it", async (t) => {
  const { baton, worker, run } = await rig(t);
  worker.job<{ to: string }, { sentTo: string }>("mail.send", async (job) => {
    assert.deepEqual([job.id, job.type, job.attempt, job.projectId], ["job_a", "mail.send", 2, "shop"]);
    return { sentTo: job.payload.to };
  });
  void run();
  baton.give("a", { payload: { to: "ada" }, job: { attempt: 2 } });
  const { complete } = await baton.outcome("a");
  assert.deepEqual(complete, { result: { sentTo: "ada" } });
  const { types, max, waitMs, worker: name } = baton.of(LEASE)[0]?.body;
  assert.deepEqual([types, max, waitMs, name], [["mail.send"], 2, 20_000, "tester"]);
});

test("every way to end is said as it was meant", async (t) => {
  const { baton, worker, run } = await rig(t, { onError: () => {} });
  const endings: Record<string, () => unknown> = {
    nothing: () => undefined,
    parked: () => park({ forMs: 60_000 }),
    parkedForEver: () => park(),
    asked: () => ask("Go on?"),
    askedMore: () => ask({ prompt: "Send?", options: [{ name: "send" }, { name: "stop", effect: "cancel" }], amount: 7 }),
    released: () => release(),
    failed: () => {
      throw new Fail("smtp_refused", "the server said 450", { class: "transient", acted: false });
    },
    failedByCode: () => {
      throw new Fail("rate_limited");
    },
    crashed: () => {
      throw new RangeError("no such page");
    },
    crashedOddly: () => {
      throw "no";
    },
    list: () => [1],
    circle: () => {
      const circle: Record<string, unknown> = {};
      return (circle["self"] = circle);
    },
  };
  worker.job<{ how: string }>("mail.send", async (job) => endings[job.payload.how]?.() as object);
  void run();
  const said: Record<string, unknown> = {};
  for (const how of Object.keys(endings)) {
    baton.give(how, { payload: { how }, job: { wakes: 3 } });
    const { lease, via, ...outcome } = await baton.outcome(how);
    said[how] = outcome;
  }
  const fail = (code: string, message: string) => ({ fail: { code, message, class: "deterministic" } });
  const { circle, ...others } = said as { circle: { fail: { code: string } } };
  assert.equal(circle.fail.code, "invalid_result");
  assert.deepEqual(others, {
    nothing: { complete: {} },
    parked: { park: { forMs: 60_000, seen: 3 } },
    parkedForEver: { park: { seen: 3 } },
    asked: { ask: { question: { prompt: "Go on?" } } },
    askedMore: {
      ask: { question: { prompt: "Send?", options: [{ name: "send" }, { name: "stop", effect: "cancel" }], amount: 7 } },
    },
    released: { release: {} },
    failed: { fail: { code: "smtp_refused", message: "the server said 450", class: "transient", acted: false } },
    failedByCode: { fail: { code: "rate_limited", message: "rate_limited" } },
    crashed: fail("crash", "RangeError: no such page"),
    crashedOddly: fail("crash", "no"),
    list: fail("invalid_result", "a result is an object; the handler returned a list"),
  });
});

test("a handler that crashes is told, with its error", async (t) => {
  const { baton, worker, run, errors } = await rig(t);
  const bug = new TypeError("x is not a function");
  worker.job("mail.send", () => Promise.reject(bug));
  void run();
  baton.give("a");
  await baton.outcome("a");
  assert.deepEqual(errors, [{ error: bug, about: { during: "job", jobId: "job_a", type: "mail.send" } }]);
});

test("no more jobs are asked for than there is room for", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 3 });
  const done = gate();
  let [most, now] = [0, 0];
  worker.job("mail.send", async () => {
    most = Math.max(most, (now += 1));
    baton.changed();
    await done.opened;
    now -= 1;
  });
  void run();
  for (const lease of ["a", "b", "c", "d", "e"]) baton.give(lease);
  await baton.until(() => now === 3);
  done.open();
  await Promise.all(["a", "b", "c", "d", "e"].map((lease) => baton.outcome(lease)));
  assert.equal(most, 3);
  assert.ok(baton.of(LEASE).every(({ body }) => body.max >= 1 && body.max <= 3));
});

test("what ended while everything was busy is settled with the next request, which does not wait", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 1 });
  worker.job("mail.send", async () => ({}));
  void run();
  baton.give("a");
  assert.equal((await baton.outcome("a")).via, "lease");
  const [first, second] = baton.of(LEASE);
  assert.deepEqual([first?.body.waitMs, first?.body.settle], [20_000, undefined]);
  assert.deepEqual([second?.body.waitMs, second?.body.settle], [0, [{ lease: "a", complete: { result: {} } }]]);
  // And then it waits again, with nothing to say.
  await baton.until(() => baton.of(LEASE)[2]?.body.waitMs === 20_000);
});

test("what ends while a request waits is settled at once", async (t) => {
  const { baton, worker, run } = await rig(t, { concurrency: 2 });
  const done = gate();
  worker.job("mail.send", () => done.opened);
  void run();
  baton.give("a");
  await baton.until(() => baton.of(LEASE).length === 2);
  done.open();
  assert.equal((await baton.outcome("a")).via, "settle");
});

test("a question comes back with its answer", async (t) => {
  const { baton, worker, run } = await rig(t);
  worker.job("mail.send", async (job) => (job.answer ? { chose: job.answer.option } : ask("Sure?")));
  void run();
  baton.give("a");
  assert.ok((await baton.outcome("a"))["ask"]);
  baton.give("b", { job: { answer: { option: "confirm" } } });
  assert.deepEqual((await baton.outcome("b"))["complete"], { result: { chose: "confirm" } });
});

test("progress is told, and tells whether the job was cancelled", async (t) => {
  const { baton, worker, run } = await rig(t);
  let reason: unknown;
  baton.script(PROGRESS, { body: { cancelRequested: false } }, { body: { cancelRequested: true } });
  worker.job("mail.send", async (job) => {
    await job.progress({ percent: 39.6, note: "4 of 10 pages" });
    assert.equal(job.signal.aborted, false);
    await job.progress({ percent: 120 });
    reason = job.signal.reason;
    job.signal.throwIfAborted();
  });
  void run();
  baton.give("a");
  assert.deepEqual((await baton.outcome("a"))["release"], {});
  assert.equal((reason as { why?: string }).why, "cancelled");
  assert.deepEqual(baton.of(PROGRESS)[0]?.body, { lease: "a", percent: 40, note: "4 of 10 pages" });
  assert.deepEqual(baton.of(PROGRESS)[1]?.body, { lease: "a", percent: 100 });
});

test("progress that cannot be told fails no job; of a lost one it says so", async (t) => {
  const { baton, worker, run, errors } = await rig(t);
  baton.script(PROGRESS, problem(503, "overloaded"), problem(409, "lease_lost"));
  const heard = gate();
  worker.job("mail.send", async (job) => {
    await job.progress({ percent: 1 });
    assert.equal(job.signal.aborted, false);
    void job.progress({ percent: 2 });
    assert.equal(((await aborted(job.signal)) as { why?: string }).why, "lost");
    heard.open();
  });
  void run();
  baton.give("a");
  await heard.opened;
  assert.deepEqual(errors.map(({ about }) => about.during), ["progress", "job"]);
});

test("a server that is away is asked again until it is back", async (t) => {
  const { baton, worker, run, errors } = await rig(t);
  let away = 4;
  baton.on(LEASE, (asked) => {
    if (away-- <= 0) return baton.lease(asked);
    return away % 2 ? "drop" : problem(500, "internal");
  });
  worker.job("mail.send", async () => ({}));
  void run();
  baton.give("a");
  await baton.outcome("a");
  assert.deepEqual(errors.map(({ about }) => about.during), ["lease"], "told once, not at every try");
});

test("a refusal for good ends the worker with it, after what runs", async (t) => {
  const { baton, worker, run } = await rig(t);
  const done = gate();
  worker.job("mail.send", () => done.opened);
  let asked = 0;
  baton.on(LEASE, (request) => {
    asked += 1;
    if (asked === 1) return baton.lease(request);
    done.open();
    return problem(422, "unknown_job_type", "no job type mail.send");
  });
  const running = run();
  baton.give("a");
  await assert.rejects(running, { code: "unknown_job_type", status: 422 });
  assert.ok((await baton.outcome("a"))["complete"]);
});

test("an empty answer that did not wait is not asked for without end", async (t) => {
  const { baton, worker, run } = await rig(t, { pauses: { baseMs: 60_000, maxMs: 60_000 } });
  worker.job("mail.send", async () => ({}));
  baton.script(LEASE, { body: { leases: [], settled: [] } });
  const running = run();
  await baton.until(() => baton.asked[0]);
  await worker.stop();
  await running;
  assert.equal(baton.of(LEASE).length, 1);
});

test("what makes no sense is refused before anything is asked", async (t) => {
  const { worker, run } = await rig(t);
  await assert.rejects(run(), /serves no job type/);
  worker.job("mail.send", async () => ({}));
  assert.throws(() => worker.job("mail.send", async () => ({})), /already/);
  await assert.rejects(rig(t, { name: "no spaces" }), TypeError);
  await assert.rejects(rig(t, { concurrency: 0 }), RangeError);
  await assert.rejects(rig(t, { waitMs: 60_000 }), RangeError);
});

test("types hold handlers to what they promised", async (t) => {
  const { worker } = await rig(t);
  worker.job<{ to: string }, { messageId: string }>("a", async (job) => (job.attempt > 1 ? park() : { messageId: job.payload.to }));
  worker.job("b", async () => {});
  worker.job("c", async () => ({ n: 1 }));
  // @ts-expect-error another result than was promised
  worker.job<object, { messageId: string }>("d", async () => ({ messageId: 1 }));
  // @ts-expect-error no object
  worker.job("e", async () => "done");
  // @ts-expect-error a field that the payload does not have
  worker.job<{ to: string }>("f", async (job) => ({ from: job.payload.from }));
});
