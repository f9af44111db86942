import assert from "node:assert/strict";
import { test } from "node:test";
import { BEAT, LEASE, SETTLE } from "./fake-baton.js";
import { problem, type Reply } from "./fake-server.js";
import { rig } from "./setup.js";

/** Numbers that look random and are the same for the same seed. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);

test(`in a storm of lost answers every job is settled, and said the same each time (SEED=${seed})`, async (t) => {
  const random = numbers(seed);
  const { baton, worker, run } = await rig(t, { concurrency: 8, onError: () => {} });
  const fault = (): Reply => (random() < 0.5 ? "drop" : problem(random() < 0.5 ? 500 : 503, "overloaded"));
  const sayings = new Map<string, string>();
  const note = (outcomes: { lease: string }[] = []) => {
    for (const outcome of outcomes) {
      const text = JSON.stringify(outcome);
      assert.equal(sayings.get(outcome.lease) ?? text, text);
      sayings.set(outcome.lease, text);
    }
  };
  baton.on(LEASE, async (asked) => {
    note(asked.body.settle);
    const roll = random();
    if (roll < 0.2) return fault();
    // A lost answer would lose leases too, which only a whole server hands out again; so only settlings are lost.
    if (roll < 0.4 && asked.body.settle) {
      await baton.lease({ ...asked, body: { ...asked.body, max: 0 } });
      return "drop";
    }
    return baton.lease(asked);
  });
  baton.on(SETTLE, (asked) => {
    note(asked.body.outcomes);
    if (random() < 0.3) return fault();
    const reply = baton.settle(asked);
    return random() < 0.3 ? "drop" : reply;
  });
  baton.on(BEAT, () => (random() < 0.3 ? fault() : { body: { lost: [], cancelled: [] } }));

  let [most, now] = [0, 0];
  worker.job<{ n: number }>("mail.send", async (job) => {
    most = Math.max(most, (now += 1));
    for (let turns = 0; turns < job.payload.n % 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    return { n: job.payload.n };
  });
  const running = run();
  const jobs = 400;
  for (let n = 0; n < jobs; n += 1) baton.give(`l${n}`, { payload: { n } });
  await baton.until(() => baton.said.length === jobs);
  await worker.stop();
  await running;
  assert.equal(baton.said.length, jobs);
  assert.ok(baton.said.every((said) => said["complete"].result.n === Number(said.lease.slice(1))));
  assert.ok(most <= 8, `${most} at once`);
});
