"""Writes a report: {"title": text, "parts": [anything, ...]} -> {"report": text}."""

import json
import sys


def line(part):
    if isinstance(part, dict):
        text = part.get("text") or json.dumps(part, sort_keys=True)
        return f"- {part['title']}: {text}" if "title" in part else f"- {text}"
    return f"- {part}"


asked = json.load(sys.stdin)
report = "\n".join([asked["title"], "=" * len(asked["title"])] + [line(part) for part in asked.get("parts", [])])
json.dump({"report": report, "lines": report.count("\n") + 1}, sys.stdout)
