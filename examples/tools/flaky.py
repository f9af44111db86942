"""Fails at first: {"failures": n, "message": any} -> {"message": any, "attempt": n}.

Baton tells a program which call this is in BATON_ATTEMPT. Exit code 75 means: call me again later."""

import json
import os
import sys

asked = json.load(sys.stdin)
attempt = int(os.environ["BATON_ATTEMPT"])
if attempt <= asked.get("failures", 0):
    print(f"attempt {attempt} fails, as it was told to", file=sys.stderr)
    sys.exit(75)
if asked.get("broken"):
    json.dump({"error": {"code": "out_of_stock", "message": "this will not get better"}}, sys.stdout)
    sys.exit(1)
json.dump({"message": asked.get("message"), "attempt": attempt}, sys.stdout)
