/** What a worker can be told when it is made, checked. */

import { hostname } from "node:os";
import { toStderr, type OnError } from "./report.js";
import type { Pauses } from "./retry.js";
import type { Connection } from "./settings.js";

export interface WorkerOptions extends Connection {
  /** What people shall call it; stands in the history. The machine's name and the process if left out. */
  name?: string;
  /** Jobs at once; 10 if left out. */
  concurrency?: number;
  /** Only jobs of these lanes. */
  lanes?: readonly string[];
  /** Only jobs of these projects. */
  projects?: readonly string[];
  /** How long one request waits for a job, at most 30000; 20000 if left out. */
  waitMs?: number;
  /** Pauses between tries while the server cannot be reached. */
  pauses?: Partial<Pauses>;
  /** Hears what no handler sees: crashes, lost leases, a server that cannot be reached. Standard error if left out. */
  onError?: OnError;
}

export interface Checked {
  name: string;
  concurrency: number;
  lanes: readonly string[] | undefined;
  projects: readonly string[] | undefined;
  waitMs: number;
  pauses: Pauses;
  onError: OnError;
}

const NAME_CHARS = 64;
const MOST_AT_ONCE = 10_000;

export function checked(options: WorkerOptions): Checked {
  const { name = ownName(), concurrency = 10, waitMs = 20_000 } = options;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw new TypeError(`a worker's name has 1 to ${NAME_CHARS} letters, digits, '.', '_' and '-'`);
  }
  whole("concurrency", concurrency, 1, MOST_AT_ONCE);
  whole("waitMs", waitMs, 1, 30_000);
  return {
    name,
    concurrency,
    lanes: options.lanes,
    projects: options.projects,
    waitMs,
    pauses: { baseMs: 200, maxMs: 10_000, ...options.pauses },
    onError: options.onError ?? toStderr,
  };
}

function whole(what: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${what} is a whole number from ${least} to ${most}`);
  }
}

function ownName(): string {
  const suffix = `-${process.pid}`;
  const host = hostname().replace(/[^A-Za-z0-9._-]/g, "-") || "worker";
  return host.slice(0, NAME_CHARS - suffix.length) + suffix;
}
