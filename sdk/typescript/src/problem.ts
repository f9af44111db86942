/**
 * What goes wrong between us and the server, as one error with a code that programs can rely on.
 *
 * Elsewhere: which of these are worth another try (`retry.ts`).
 */

/** Members of an RFC 9457 problem, as the server sends them; some codes bring more of their own. */
export interface Problem {
  status?: number;
  code?: string;
  title?: string;
  detail?: string;
  hint?: string;
  requestId?: string;
  [member: string]: unknown;
}

export interface BatonErrorFields {
  /** Of the answer; 0 if there was none. */
  status: number;
  code: string;
  detail: string;
  hint?: string | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  problem?: Problem | undefined;
  cause?: unknown;
}

/**
 * The server refused, or could not be reached. `code` is one of the server's (docs/errors.md), or one of
 * our own: `connection_failed`, `timeout`, `bad_answer`, `wait_timeout`, or `http_404` and the like for an
 * answer that is no problem document, as proxies give.
 */
export class BatonError extends Error {
  override readonly name: string = "BatonError";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string | undefined;
  readonly requestId: string | undefined;
  /** How long the server asks us to stay away. */
  readonly retryAfterMs: number | undefined;
  /** The whole problem, with members that only some codes have, such as `index` or `limit`. */
  readonly problem: Problem | undefined;

  constructor(fields: BatonErrorFields) {
    const { code, detail, hint } = fields;
    super(`${code}: ${detail}${hint ? ` (${hint})` : ""}`, { cause: fields.cause });
    this.status = fields.status;
    this.code = code;
    this.detail = detail;
    this.hint = hint;
    this.requestId = fields.requestId;
    this.retryAfterMs = fields.retryAfterMs;
    this.problem = fields.problem;
  }
}

/** Makes an error of an answer that is not a success. */
export function refused(status: number, headers: Headers, body: string): BatonError {
  const problem = parsed(body);
  const text = (member: unknown) => (typeof member === "string" ? member : undefined);
  return new BatonError({
    status,
    code: text(problem?.code) ?? `http_${status}`,
    detail: text(problem?.detail) ?? text(problem?.title) ?? `the server answered ${status}`,
    hint: text(problem?.hint),
    requestId: text(problem?.requestId) ?? headers.get("x-request-id") ?? undefined,
    retryAfterMs: retryAfterMs(headers.get("retry-after"), Date.now()),
    problem,
  });
}

/** `Retry-After` is a number of seconds or a date. */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

function parsed(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}
