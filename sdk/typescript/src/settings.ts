/** Where the server is, and what we come in with: from options, or else from the environment. */

export interface Connection {
  /** The server's base address; `BATON_URL` if left out, or else `BATON_SERVER`, or else the server of this machine. */
  url?: string;
  /** `BATON_KEY` if left out. */
  key?: string;
}

const HERE = "http://127.0.0.1:22866";

export function connection(given: Connection): { url: string; key: string } {
  const { BATON_URL, BATON_SERVER, BATON_KEY } = process.env;
  // The second is the command line's own, so that one setting does for both. What is set to nothing is not set.
  return { url: address(given.url ?? (BATON_URL || BATON_SERVER || HERE)), key: secret(given.key ?? BATON_KEY) };
}

function address(text: string): string {
  // Neither is the text repeated: somebody may have put a password into it.
  if (!URL.canParse(text)) throw new TypeError("the url of the server cannot be read");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError("the url of the server begins with http:// or https://");
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("the url of the server has only a scheme, a host, a port and a path");
  }
  return url.href.replace(/\/+$/, "");
}

function secret(text: string | undefined): string {
  // Files and environments often end in a line break, which no header can carry.
  const key = text?.trim();
  if (!key) throw new TypeError("no key: give one as `key`, or set BATON_KEY");
  // Checked here because fetch would repeat what it cannot send in its own error.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError("the key has characters that no key has");
  return key;
}
