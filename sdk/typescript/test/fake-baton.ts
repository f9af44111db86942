/** A server that hands out what a test gives it, and keeps the outcomes. */

import { FakeServer, type Asked, type Reply } from "./fake-server.js";

export const LEASE = "POST /api/v1/worker/lease";
export const BEAT = "POST /api/v1/worker/heartbeat";
export const SETTLE = "POST /api/v1/worker/settle";
export const PROGRESS = "POST /api/v1/worker/progress";

export type Said = { lease: string; via: "lease" | "settle"; [outcome: string]: any };

export class FakeBaton extends FakeServer {
  readonly said: Said[] = [];
  /** What beats are answered with. */
  lost: string[] = [];
  cancelled: string[] = [];
  #toGive: object[] = [];

  constructor() {
    super();
    this.on(LEASE, (asked) => this.lease(asked));
    this.on(SETTLE, (asked) => this.settle(asked));
    this.on(BEAT, () => ({ body: { lost: this.lost, cancelled: this.cancelled } }));
    this.on(PROGRESS, () => ({ body: { cancelRequested: false } }));
  }

  give(lease: string, more: { type?: string; payload?: object; leaseMs?: number; job?: object } = {}): void {
    const { type = "mail.send", payload = {}, leaseMs = 30_000, job = {} } = more;
    this.#toGive.push({
      lease,
      leaseMs,
      leaseUntil: "2026-01-05T10:00:30.000000Z",
      timeoutMs: 60_000,
      job: {
        id: `job_${lease}`,
        type,
        version: 1,
        projectId: "shop",
        lane: "project:shop",
        priority: 200,
        attempt: 1,
        maxAttempts: 3,
        failures: 0,
        createdAt: "2026-01-05T09:59:58.120000Z",
        wakes: 0,
        answer: null,
        ...job,
      },
      payload,
    });
    this.changed();
  }

  /** Waits for what was said of a lease. */
  outcome(lease: string): Promise<Said> {
    return this.until(() => this.said.find((said) => said.lease === lease));
  }

  async lease(asked: Asked): Promise<Reply> {
    const { max, waitMs, settle = [] } = asked.body;
    const settled = this.#keep(settle, "lease");
    if (waitMs > 0) await this.until(() => this.#toGive.length > 0 || asked.gone.aborted);
    if (asked.gone.aborted) return "drop";
    return { body: { leases: this.#toGive.splice(0, max), settled } };
  }

  settle(asked: Asked): Reply {
    return { body: { settled: this.#keep(asked.body.outcomes, "settle") } };
  }

  #keep(outcomes: { lease: string }[], via: Said["via"]): object[] {
    return outcomes.map((outcome) => {
      const before = this.said.some((said) => said.lease === outcome.lease);
      if (!before) this.said.push({ ...outcome, via });
      return { lease: outcome.lease, settled: before ? "already" : "now" };
    });
  }
}
