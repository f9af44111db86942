"""Publishes a text, once per key: {"text": text} -> {"published": path, "again": bool}.

The same step gets the same BATON_IDEMPOTENCY_KEY, however often it is called: a call that was cut off, and is
repeated, finds what the first one did."""

import hashlib
import json
import os
import sys
import tempfile

text = json.load(sys.stdin)["text"]
key = hashlib.sha256(os.environ["BATON_IDEMPOTENCY_KEY"].encode()).hexdigest()[:16]
path = os.path.join(tempfile.gettempdir(), f"baton-example-{key}.txt")
again = os.path.exists(path)
if not again:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
json.dump({"published": path, "again": again}, sys.stdout)
