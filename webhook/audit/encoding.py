"""JSON of audit records: one line that any terminal can show as it is."""

import json

import orjson

from webhook.kube.text import safe_json


def dump(value: object) -> bytes:
    r"""Return `value` as JSON; what could command a terminal stands in it as a `\u` escape."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair (from an exception's text) or an integer over 64 bits: rather inexact than absent.
        text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
        data = text.encode("utf-8", "replace")
    return data if data.isascii() and b"\x7f" not in data else safe_json(data)
