/**
 * Heartbeats: one timer for all leases, three beats per shortest lease.
 *
 * Invariants
 * - At most one beat is under way. Leases run out by our own clock even while it hangs.
 * - A lease counts from when its last good beat was sent, never from when it was answered: we stop no later
 *   than the server gives the job to somebody else.
 * - What is being settled is beaten too, so that it stays ours while settlings do not get through.
 */

import { performance } from "node:perf_hooks";
import type { Held } from "./held.js";
import { Interrupted } from "./interrupted.js";
import { BatonError } from "./problem.js";
import type { OnError } from "./report.js";
import type { Wire } from "./wire.js";

const PER_LEASE = 3;
const AT_ONCE = 1_000;
const TIMEOUT_MS = { least: 1_000, most: 10_000 };

export class Beats {
  readonly #wire: Wire;
  readonly #report: OnError;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #nextAt = Infinity;
  #beating = false;
  #failing = false;

  constructor(wire: Wire, report: OnError) {
    this.#wire = wire;
    this.#report = report;
  }

  add(held: Held): void {
    this.#held.set(held.lease, held);
    this.#nextAt = Math.min(this.#nextAt, performance.now() + held.leaseMs / PER_LEASE);
    this.#arm();
  }

  remove(held: Held): void {
    this.#held.delete(held.lease);
    if (this.#held.size === 0) this.#nextAt = Infinity;
    this.#arm();
  }

  /** It is no longer ours. While it is being settled, the answer to that says what became of it. */
  lose(held: Held, detail: string): void {
    if (!this.#held.has(held.lease)) return;
    this.remove(held);
    if (held.stage !== "working") return;
    held.stage = "over";
    held.interrupt("lost", detail);
    this.#report(new Interrupted("lost", detail), held.about("job"));
  }

  #arm(): void {
    clearTimeout(this.#timer);
    let at = this.#beating ? Infinity : this.#nextAt;
    for (const held of this.#held.values()) at = Math.min(at, held.goodUntil);
    if (at < Infinity) this.#timer = setTimeout(() => this.#tick(), Math.max(1, at - performance.now()));
  }

  #tick(): void {
    const now = performance.now();
    for (const held of [...this.#held.values()]) {
      if (held.goodUntil <= now) this.lose(held, `no heartbeat got through for ${held.leaseMs} ms`);
    }
    if (!this.#beating && this.#nextAt <= now && this.#held.size > 0) void this.#beat();
    this.#arm();
  }

  async #beat(): Promise<void> {
    this.#beating = true;
    const startedAt = performance.now();
    let nextAt: number;
    try {
      const all = [...this.#held.values()];
      for (let i = 0; i < all.length; i += AT_ONCE) await this.#exchange(all.slice(i, i + AT_ONCE));
      this.#failing = false;
      nextAt = startedAt + this.#intervalMs();
    } catch (error) {
      // Told once, not at every beat of an outage.
      if (!this.#failing) this.#report(error as Error, { during: "heartbeat" });
      this.#failing = true;
      const asked = error instanceof BatonError ? (error.retryAfterMs ?? 0) : 0;
      const intervalMs = this.#intervalMs();
      nextAt = performance.now() + Math.min(intervalMs, Math.max(intervalMs / 4, asked));
    }
    this.#beating = false;
    this.#nextAt = this.#held.size > 0 ? nextAt : Infinity;
    this.#arm();
  }

  async #exchange(beaten: Held[]): Promise<void> {
    const sentAt = performance.now();
    const { lost, cancelled } = await this.#wire.once<{ lost: string[]; cancelled: string[] }>({
      method: "POST",
      path: "/api/v1/worker/heartbeat",
      body: { leases: beaten.map((held) => held.lease) },
      timeoutMs: Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, this.#intervalMs())),
    });
    const [gone, unwanted] = [new Set(lost), new Set(cancelled)];
    for (const held of beaten) {
      if (gone.has(held.lease)) {
        this.lose(held, "the server says so");
        continue;
      }
      held.goodUntil = sentAt + held.leaseMs;
      if (unwanted.has(held.lease)) held.interrupt("cancelled");
    }
  }

  #intervalMs(): number {
    let shortest = Infinity;
    for (const held of this.#held.values()) shortest = Math.min(shortest, held.leaseMs);
    return shortest / PER_LEASE;
  }
}
