/** A server on this machine that answers as a test says, and remembers what it was asked. */

import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export interface Asked {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  // Tests look into bodies freely.
  body: any;
  /** Aborted when whoever asked has hung up. */
  gone: AbortSignal;
}

export type Reply = { status?: number; body?: unknown; text?: string; headers?: Record<string, string> } | "drop";
export type Responder = (asked: Asked) => Reply | Promise<Reply>;

export class FakeServer {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #responders = new Map<string, Responder>();
  #watchers: (() => void)[] = [];

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const gone = new AbortController();
        response.on("close", () => {
          if (!response.writableFinished) gone.abort();
          this.changed();
        });
        const text = Buffer.concat(chunks).toString();
        const asked: Asked = {
          method: request.method ?? "",
          path: request.url ?? "",
          headers: request.headers,
          body: text === "" ? undefined : JSON.parse(text),
          gone: gone.signal,
        };
        void this.#respond(asked).then((reply) => {
          if (reply === "drop") return request.socket.destroy();
          const type = (reply.status ?? 200) >= 400 ? "application/problem+json" : "application/json";
          response.writeHead(reply.status ?? 200, { "content-type": type, ...reply.headers });
          return response.end(reply.text ?? JSON.stringify(reply.body ?? {}));
        });
      });
    });
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Answers `POST /api/v1/jobs` and the like; the last one that was set counts. */
  on(route: string, responder: Responder): this {
    this.#responders.set(route, responder);
    return this;
  }

  /** Answers with these, one after the other; the last one again and again. */
  script(route: string, ...replies: Reply[]): this {
    let next = 0;
    return this.on(route, () => replies[Math.min(next++, replies.length - 1)] ?? "drop");
  }

  of(route: string): Asked[] {
    return this.asked.filter((asked) => routeOf(asked) === route);
  }

  /** Waits until something holds; looks whenever something has happened here. */
  async until<T>(look: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  changed(): void {
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const watcher of watchers) watcher();
  }

  async #respond(asked: Asked): Promise<Reply> {
    this.asked.push(asked);
    this.changed();
    const responder = this.#responders.get(routeOf(asked));
    if (!responder) return problem(404, "not_found", `nothing at ${routeOf(asked)}`);
    const reply = await responder(asked);
    this.changed();
    return reply;
  }
}

export function problem(status: number, code: string, detail = "no", more: object = {}): Exclude<Reply, "drop"> {
  return { status, body: { type: `/docs/errors#${code}`, status, code, detail, ...more } };
}

function routeOf({ method, path }: Asked): string {
  return `${method} ${path.split("?")[0]}`;
}
