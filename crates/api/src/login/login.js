// Hands in the ticket that stands after the # of a login link, which the browser has sent to nobody.
"use strict";

const at = (id) => document.getElementById(id);

function say(text, todo) {
  at("said").textContent = text;
  at("todo").hidden = !todo;
}

async function ask(method, body) {
  return fetch("/api/v1/session", {
    method,
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
  });
}

async function enter(ticket) {
  const answer = await ask("POST", { ticket });
  const told = await answer.json();
  if (!answer.ok) {
    say(`Nobody was let in: ${told.detail}.`, true);
    return;
  }
  const until = new Date(told.expiresAt).toLocaleString();
  say(`You are in, with the key “${told.key.label}” (${told.key.role}) of ${told.org}, until ${until}.`, false);
  at("leave").hidden = false;
}

async function leave() {
  const answer = await ask("DELETE");
  at("leave").hidden = answer.ok;
  say(answer.ok ? "You are out." : "That did not work; try again.", answer.ok);
}

const ticket = location.hash.slice(1);
// Neither the address bar nor the history shall keep it.
history.replaceState(null, "", location.pathname);
const failed = () => say("The server does not answer.", true);
at("leave").addEventListener("click", () => leave().catch(failed));
if (ticket) {
  enter(ticket).catch(failed);
} else {
  say("This address carries no ticket.", true);
}
