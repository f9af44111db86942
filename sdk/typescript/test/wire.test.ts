import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { BatonError } from "../src/index.js";
import { retryAfterMs } from "../src/problem.js";
import { Wire, type WireOptions } from "../src/wire.js";
import { FakeServer, problem } from "./fake-server.js";

const ROUTE = "GET /x";

async function setUp(t: TestContext, options: Partial<WireOptions> = {}) {
  const server = await new FakeServer().start();
  t.after(() => server.stop());
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  const wire = new Wire({ url: server.url, key: "bk_test", pause, random: () => 1, ...options });
  return { server, wire, pauses, call: () => wire.call<unknown>({ method: "GET", path: "/x" }) };
}

const failure = async (call: Promise<unknown>): Promise<BatonError> => {
  const error = await call.then(
    () => assert.fail("it went well"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof BatonError);
  return error;
};

for (const status of [408, 429, 502, 503, 504]) {
  test(`${status} is tried again`, async (t) => {
    const { server, call } = await setUp(t);
    server.script(ROUTE, problem(status, "later"), { body: { fine: true } });
    assert.deepEqual(await call(), { fine: true });
  });
}

for (const status of [400, 401, 403, 404, 409, 422, 500]) {
  test(`${status} is final`, async (t) => {
    const { server, call } = await setUp(t);
    server.script(ROUTE, problem(status, "no"));
    assert.equal((await failure(call())).status, status);
    assert.equal(server.asked.length, 1);
  });
}

test("a connection that breaks is tried again", async (t) => {
  const { server, call } = await setUp(t);
  server.script(ROUTE, "drop", "drop", { body: { fine: true } });
  assert.deepEqual(await call(), { fine: true });
});

test("pauses grow up to a bound, and tries have one", async (t) => {
  const { server, call, pauses } = await setUp(t, { retry: { tries: 5, baseMs: 100, maxMs: 350 } });
  server.script(ROUTE, "drop");
  const error = await failure(call());
  assert.deepEqual([error.status, error.code], [0, "connection_failed"]);
  assert.equal(server.asked.length, 5);
  assert.deepEqual(pauses, [100, 200, 350, 350]);
});

test("pauses are jittered by half", async (t) => {
  const { server, call, pauses } = await setUp(t, { random: () => 0, retry: { baseMs: 100 } });
  server.script(ROUTE, "drop", {});
  await call();
  assert.deepEqual(pauses, [50]);
});

test("Retry-After is waited for", async (t) => {
  const { server, call, pauses } = await setUp(t, { random: () => 0 });
  server.script(ROUTE, { ...problem(429, "rate_limited"), headers: { "retry-after": "7" } }, {});
  await call();
  assert.deepEqual(pauses, [7_000]);
});

test("a Retry-After that is too long is for the caller to decide", async (t) => {
  const { server, call, pauses } = await setUp(t);
  server.script(ROUTE, { ...problem(503, "overloaded"), headers: { "retry-after": "3600" } });
  assert.equal((await failure(call())).retryAfterMs, 3_600_000);
  assert.deepEqual(pauses, []);
});

test("Retry-After is a number of seconds or a date", () => {
  const now = Date.parse("2026-01-05T10:00:00Z");
  assert.equal(retryAfterMs("3", now), 3_000);
  assert.equal(retryAfterMs("Mon, 05 Jan 2026 10:00:09 GMT", now), 9_000);
  assert.equal(retryAfterMs("Mon, 05 Jan 2026 09:00:00 GMT", now), 0);
  assert.equal(retryAfterMs("soon", now), undefined);
  assert.equal(retryAfterMs(null, now), undefined);
});

test("codes that no repetition changes are final, whatever their status", async (t) => {
  for (const [status, code] of [[503, "queue_disabled"], [503, "feature_disabled"], [429, "queue_full"]] as const) {
    const { server, call } = await setUp(t);
    server.script(ROUTE, problem(status, code));
    assert.equal((await failure(call())).code, code);
    assert.equal(server.asked.length, 1);
  }
});

test("a full queue that names a time, and a request that still runs, are asked again", async (t) => {
  for (const [status, code] of [[429, "queue_full"], [409, "idempotency_in_flight"]] as const) {
    const { server, call } = await setUp(t);
    server.script(ROUTE, { ...problem(status, code), headers: { "retry-after": "1" } }, {});
    await call();
    assert.equal(server.asked.length, 2);
  }
});

test("a problem is read whole", async (t) => {
  const { server, call } = await setUp(t);
  const more = { hint: "send less", requestId: "r1", index: 3 };
  server.script(ROUTE, problem(422, "invalid_payload", "payload.to is missing", more));
  const error = await failure(call());
  assert.deepEqual(
    [error.status, error.code, error.detail, error.hint, error.requestId, error.problem?.["index"]],
    [422, "invalid_payload", "payload.to is missing", "send less", "r1", 3],
  );
  assert.equal(error.message, "invalid_payload: payload.to is missing (send less)");
});

test("an answer that is no problem still has a code", async (t) => {
  const { server, call } = await setUp(t);
  for (const text of ["<html>no</html>", "", "[1]", '"no"']) {
    server.script(ROUTE, { status: 418, text, headers: { "x-request-id": "r2" } });
    const error = await failure(call());
    assert.deepEqual([error.code, error.detail, error.requestId], ["http_418", "the server answered 418", "r2"]);
  }
});

test("a success that is not JSON is told, and a redirect is not followed", async (t) => {
  const { server, call } = await setUp(t);
  server.script(ROUTE, { text: "<html>" });
  assert.equal((await failure(call())).code, "bad_answer");
  server.script(ROUTE, { status: 307, text: "", headers: { location: "/elsewhere" } });
  assert.equal((await failure(call())).code, "http_307");
  assert.deepEqual(server.asked.map((asked) => asked.path), ["/x", "/x"]);
});

test("an answer that does not come is a timeout, and is tried again", async (t) => {
  const { server, wire } = await setUp(t);
  let first = true;
  server.on(ROUTE, async (asked) => {
    if (!first) return { body: { fine: true } };
    first = false;
    await server.until(() => asked.gone.aborted);
    return "drop";
  });
  assert.deepEqual(await wire.call({ method: "GET", path: "/x", timeoutMs: 50 }), { fine: true });
});

test("who is no longer interested is told so, and the connection is let go", async (t) => {
  const { server, wire } = await setUp(t);
  const controller = new AbortController();
  server.on(ROUTE, async (asked) => {
    controller.abort(new Error("enough"));
    await server.until(() => asked.gone.aborted);
    return {};
  });
  await assert.rejects(wire.call({ method: "GET", path: "/x", signal: controller.signal }), /enough/);
  await server.until(() => server.asked[0]?.gone.aborted);
});

test("a pause ends when nobody is interested any more", async (t) => {
  const server = await new FakeServer().start();
  t.after(() => server.stop());
  const wire = new Wire({ url: server.url, key: "bk_test", retry: { baseMs: 60_000, maxMs: 60_000 } });
  const controller = new AbortController();
  server.on(ROUTE, () => {
    setImmediate(() => controller.abort(new Error("enough")));
    return problem(503, "overloaded");
  });
  await assert.rejects(wire.call({ method: "GET", path: "/x", signal: controller.signal }), /enough/);
});
