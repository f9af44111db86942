import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { BatonError, Client, Worker } from "../src/index.js";
import { FakeServer, problem } from "./fake-server.js";

const JOBS = "POST /api/v1/jobs";

async function setUp(t: TestContext) {
  const server = await new FakeServer().start();
  t.after(() => server.stop());
  return { server, client: new Client({ url: `${server.url}/`, key: "bk_secret", retry: { baseMs: 1, maxMs: 2 } }) };
}

test("a job is enqueued with its fields, a key and an idempotency key", async (t) => {
  const { server, client } = await setUp(t);
  server.script(JOBS, { status: 201, body: { id: "job_1", dedupe: "enqueued" } });
  const notBefore = new Date("2026-02-01T00:00:00Z");
  const job = await client.enqueue({ type: "echo", projectId: "demo", payload: { message: "hello" }, notBefore });
  assert.deepEqual([job.id, job.dedupe], ["job_1", "enqueued"]);
  const asked = server.asked[0];
  assert.deepEqual(asked?.body, {
    type: "echo",
    projectId: "demo",
    payload: { message: "hello" },
    notBefore: "2026-02-01T00:00:00.000Z",
  });
  assert.equal(asked?.headers.authorization, "Bearer bk_secret");
  assert.equal(asked?.headers["content-type"], "application/json");
  assert.match(String(asked?.headers["idempotency-key"]), /^[0-9a-f-]{36}$/);
});

test("an answer that got lost is asked for again with the same idempotency key", async (t) => {
  const { server, client } = await setUp(t);
  const made = new Map<string, string>();
  let drops = 2;
  server.on(JOBS, ({ headers }) => {
    const key = String(headers["idempotency-key"]);
    made.set(key, made.get(key) ?? `job_${made.size + 1}`);
    return drops-- > 0 ? "drop" : { body: { id: made.get(key), dedupe: "enqueued" } };
  });
  const job = await client.enqueue({ type: "echo", projectId: "demo" });
  assert.deepEqual([job.id, made.size, server.asked.length], ["job_1", 1, 3]);
  await client.enqueue({ type: "echo", projectId: "demo" });
  assert.equal(made.size, 2, "another call is another request");
});

test("an idempotency key of the caller's own is used", async (t) => {
  const { server, client } = await setUp(t);
  server.script(JOBS, { body: {} });
  await client.enqueue({ type: "echo", projectId: "demo" }, { idempotencyKey: "order-4711" });
  assert.equal(server.asked[0]?.headers["idempotency-key"], "order-4711");
});

test("a batch tells which job was the reason", async (t) => {
  const { server, client } = await setUp(t);
  server.script("POST /api/v1/jobs/batch", problem(422, "invalid_payload", "jobs[1] …", { index: 1 }), {
    status: 201,
    body: { jobs: [{ jobId: "job_1", dedupe: "enqueued", state: "queued" }], enqueued: 1 },
  });
  const jobs = [{ type: "echo", projectId: "demo" }];
  await assert.rejects(client.batch(jobs), (error) => error instanceof BatonError && error.problem?.["index"] === 1);
  assert.equal((await client.batch(jobs)).enqueued, 1);
  assert.deepEqual(server.asked[0]?.body, { jobs });
});

test("jobs are cancelled and woken, safely twice", async (t) => {
  const { server, client } = await setUp(t);
  server.script("POST /api/v1/jobs/job_1/cancel", "drop", { body: { id: "job_1", state: "cancelled" } });
  server.script("POST /api/v1/jobs/job_1/wake", { body: { id: "job_1" } });
  assert.equal((await client.cancel("job_1", { reason: "no need" })).state, "cancelled");
  await client.wake("job_1");
  assert.deepEqual(server.asked.map((asked) => asked.body), [{ reason: "no need" }, { reason: "no need" }, {}]);
  const keys = server.asked.map((asked) => asked.headers["idempotency-key"]);
  assert.ok(keys[0] === keys[1] && keys[1] !== keys[2] && keys[2]);
});

test("waiting ends with the job", async (t) => {
  const { server, client } = await setUp(t);
  const body = (state: string) => ({ body: { id: "job_1", state } });
  server.script("GET /api/v1/jobs/job_1", body("queued"), body("executing"), problem(503, "overloaded"), body("failed"));
  assert.equal((await client.wait("job_1")).state, "failed");
  assert.equal(server.asked.length, 4);
});

test("waiting ends with its time, and with its signal", async (t) => {
  const { server, client } = await setUp(t);
  server.script("GET /api/v1/jobs/job_1", { body: { id: "job_1", state: "queued" } });
  await assert.rejects(client.wait("job_1", { timeoutMs: 1 }), { code: "wait_timeout" });
  const controller = new AbortController();
  const waiting = client.wait("job_1", { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("job types are put, looked at and listed", async (t) => {
  const { server, client } = await setUp(t);
  const type = { type: "mail.send", version: 2, lease: "30s" };
  server.script("PUT /api/v1/job-types/mail.send", "drop", { body: type });
  server.script("GET /api/v1/job-types/mail.send", { body: type });
  server.script("GET /api/v1/job-types", { body: { jobTypes: [type], nextCursor: null } });
  assert.equal((await client.putJobType("mail.send", { lease: "30s", lane: { key: "mail", limit: null } })).version, 2);
  assert.equal((await client.getJobType("mail.send")).lease, "30s");
  assert.deepEqual(await client.listJobTypes({ limit: 5 }), { items: [type], nextCursor: null });
  assert.equal(server.asked.at(-1)?.path, "/api/v1/job-types?limit=5");
  assert.deepEqual(server.asked[0]?.body, { lease: "30s", lane: { key: "mail", limit: null } });
});

test("decisions are found by what waits for them, and answered", async (t) => {
  const { server, client } = await setUp(t);
  server.script("GET /api/v1/decisions", { body: { decisions: [{ id: "dec_1" }], nextCursor: null } });
  server.script("POST /api/v1/decisions/dec_1/resolve", { body: { id: "dec_1", state: "resolved" } });
  const { items } = await client.listDecisions({ subject: "job_1", state: "open" });
  assert.equal(server.asked[0]?.path, "/api/v1/decisions?subject=job_1&state=open");
  const decided = await client.resolveDecision(items[0]?.id ?? "", { option: "confirm", comment: "fine" });
  assert.equal(decided.state, "resolved");
  assert.deepEqual(server.asked[1]?.body, { option: "confirm", comment: "fine" });
});

test("names are encoded in paths", async (t) => {
  const { server, client } = await setUp(t);
  await assert.rejects(client.get("../keys"), { code: "not_found" });
  assert.equal(server.asked[0]?.path, "/api/v1/jobs/..%2Fkeys");
});

test("address and key come from the environment, and options go before it", async (t) => {
  const server = await new FakeServer().start();
  const before = { ...process.env };
  t.after(async () => {
    process.env = before;
    await server.stop();
  });
  process.env["BATON_URL"] = server.url;
  process.env["BATON_KEY"] = "bk_environment\n";
  server.script("GET /api/v1/jobs/job_1", { body: {} });
  await new Client().get("job_1");
  await new Client({ key: "bk_option" }).get("job_1");
  assert.deepEqual(
    server.asked.map((asked) => asked.headers.authorization),
    ["Bearer bk_environment", "Bearer bk_option"],
  );
  // The command line's own setting does too, where the other says nothing.
  Object.assign(process.env, { BATON_URL: "", BATON_SERVER: server.url });
  await new Client().get("job_1");
  Object.assign(process.env, { BATON_URL: server.url, BATON_SERVER: "nowhere" });
  await new Client().get("job_1");
  assert.equal(server.asked.length, 4);
  delete process.env["BATON_KEY"];
  assert.throws(() => new Client(), /BATON_KEY/);
});

test("the key shows nowhere", async () => {
  const options = { url: "http://127.0.0.1:1", key: "bk_canary", retry: { tries: 1 } };
  for (const made of [new Client(options), new Worker(options)]) {
    const shown = inspect(made, { depth: 10, showHidden: true, getters: true }) + JSON.stringify(made);
    assert.ok(!shown.includes("canary"), shown);
    assert.ok(!Object.getOwnPropertyNames(made).join().includes("key"));
  }
  const error = await new Client(options).get("job_1").catch((thrown: unknown) => thrown);
  assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes("canary"));
  for (const wrong of [{ key: "bk_can\nary" }, { url: "http://bk_canary@127.0.0.1" }, { url: "canary" }]) {
    assert.throws(
      () => new Client({ ...options, ...wrong }),
      (thrown) => thrown instanceof TypeError && !/can\s*ary/.test(thrown.message),
    );
  }
});
