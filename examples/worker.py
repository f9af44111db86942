"""A complete worker in plain Python. Serves the job type `shout`: {"text": "hi"} -> {"text": "HI"}.

    BATON_URL=http://127.0.0.1:22866 BATON_KEY=bk_... python3 worker.py

The key has the role `worker`; an operator registers the type once: PUT /api/v1/job-types/shout.
SIGTERM and Ctrl-C let the job in hand end, and give the others back."""
import contextlib, http.client, itertools, json, os, random, signal, sys, threading, time, urllib.request

KEY = os.environ.get("BATON_KEY") or sys.exit("set BATON_KEY to a key with the role worker")
SERVER = (os.environ.get("BATON_URL") or os.environ.get("BATON_SERVER") or "http://127.0.0.1:22866").rstrip("/")
HEADERS = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
ASK = {"types": ["shout"], "max": 4, "waitMs": 5_000, "worker": "shouter"}
TROUBLE = (OSError, http.client.HTTPException)  # An HTTPError is an OSError, too.
stopping, held = [], {}  # held: lease -> [its length, its end], in seconds

def call(route, body, until):
    """The answer; asks again with growing pauses until then. What is refused for good raises."""
    request = urllib.request.Request(f"{SERVER}/api/v1/worker/{route}", json.dumps(body).encode(), HEADERS)
    for n in itertools.count():
        try:
            with urllib.request.urlopen(request, timeout=20 if route == "lease" else 5) as answer:
                return json.load(answer)
        except TROUBLE as error:
            status, headers = getattr(error, "code", 503), getattr(error, "headers", None) or {}
            if stopping and route == "lease":
                sys.exit()  # Nothing is held.
            if time.monotonic() > until or (status < 500 and status not in (408, 429)):
                raise
        time.sleep(float(headers.get("Retry-After") or 0) + 0.2 * 2 ** min(n, 5) * random.uniform(0.5, 1))

def beat():
    while True:
        mine, now = held, time.monotonic()
        try:
            lost = call("heartbeat", {"leases": list(mine)}, until=0)["lost"] if mine else []
            for lease, entry in mine.items():
                entry[1] = 0 if lease in lost else now + entry[0]
        except TROUBLE as error:
            print("no beat got through:", error)
        time.sleep(min((length for length, _ in mine.values()), default=1) / 3)

def work(payload):
    try:
        return "complete", {"result": {"text": payload["text"].upper()}}
    except Exception as error:
        return "fail", {"code": "crash", "message": f"{type(error).__name__}: {error}"}

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: stopping.append(True))
threading.Thread(target=beat, daemon=True).start()
while not stopping:
    taken, now = call("lease", ASK, until=float("inf"))["leases"], time.monotonic()
    held = {one["lease"]: [one["leaseMs"] / 1e3, now + one["leaseMs"] / 1e3] for one in taken}
    for lease, payload in [(one["lease"], one["payload"]) for one in taken]:
        if held[lease][1] > time.monotonic():  # Else somebody else may have begun it.
            route, said = ("release", {}) if stopping else work(payload)
            with contextlib.suppress(TROUBLE):  # It was too late: somebody else does it again.
                call(route, {"lease": lease, **said}, until=time.monotonic() + held[lease][0])
    held = {}
