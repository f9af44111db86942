/** The real server, to be killed and started again: the program that BATON_BIN names. */

import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../src/index.js";

export const BIN = process.env["BATON_BIN"];
/** Nothing that a test waits for takes longer. */
export const PATIENCE_MS = 30_000;
const LOOK_MS = 20;

/** The first that is something. */
export async function until<T>(look: () => T | undefined | false, what: string): Promise<T> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(LOOK_MS)) {
    const found = look();
    if (found !== undefined && found !== false) return found;
  }
  return assert.fail(`it did not happen: ${what}`);
}

/** On a port that the first start chooses, and every other keeps. */
export class RealServer {
  readonly directory = mkdtempSync(join(tmpdir(), "baton-sdk-"));
  #port = 0;
  #process: ChildProcess | undefined;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get #adminKey(): string {
    return readFileSync(join(this.directory, "data", "admin.key"), "utf8").trim();
  }

  get client(): Client {
    return new Client({ url: this.url, key: this.#adminKey });
  }

  async start(): Promise<void> {
    const args = ["up", "--listen", `127.0.0.1:${this.#port}`, "--rate-limit", "0", "--data-dir", "data"];
    const [said, log] = [openSync(join(this.directory, "said"), "w"), openSync(join(this.directory, "log"), "a")];
    const started = spawn(BIN ?? "", args, { cwd: this.directory, env: this.#env(), stdio: ["ignore", said, log] });
    [said, log].forEach((file) => closeSync(file));
    this.#process = started;
    const port = await until(() => {
      assert.equal(started.exitCode, null, "the server ended");
      return /listens on {2}http:\/\/127\.0\.0\.1:(\d+)\n/.exec(readFileSync(join(this.directory, "said"), "utf8"))?.[1];
    }, "the server is up");
    this.#port = Number(port);
  }

  async kill(): Promise<void> {
    await end(this.#process);
    this.#process = undefined;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true });
  }

  workerKey(): string {
    const args = ["keys", "create", "worker", "--role", "worker", "--json", "--server", this.url];
    const made = execFileSync(BIN ?? "", args, { env: { ...this.#env(), BATON_KEY: this.#adminKey }, encoding: "utf8" });
    return (JSON.parse(made) as { secret: string }).secret;
  }

  /** How often the history says of each job that it was completed. */
  async completions(): Promise<Map<string, number>> {
    const times = new Map<string, number>();
    const headers = { authorization: `Bearer ${this.#adminKey}` };
    for (let after = ""; ; ) {
      const page = await fetch(`${this.url}/api/v1/events?limit=1000${after && `&after=${after}`}`, { headers });
      const { events, next } = (await page.json()) as { events: { kind: string; subject: string }[]; next: string };
      for (const { kind, subject } of events) {
        if (kind === "job.completed") times.set(subject, (times.get(subject) ?? 0) + 1);
      }
      if (events.length === 0) return times;
      after = next;
    }
  }

  #env(): NodeJS.ProcessEnv {
    // Nothing of a developer's own settings; the mark is for whoever ends what a test has left.
    return { HOME: this.directory, BATON_GUARD: process.env["BATON_GUARD"] };
  }
}

/** Kills a process, if it still runs, and waits until it is gone. */
export async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
