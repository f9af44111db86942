"""Reads a document: {"id": name} -> {"id", "title", "text", "words"}."""

import json
import sys

from library import TEXTS


def main():
    name = json.load(sys.stdin)["id"]
    if name not in TEXTS:
        error = {"code": "no_such_document", "message": f"there is no document {name!r}", "class": "fatal"}
        json.dump({"error": error}, sys.stdout)
        sys.exit(1)
    title, text = TEXTS[name]
    json.dump({"id": name, "title": title, "text": text, "words": len(text.split())}, sys.stdout)


main()
