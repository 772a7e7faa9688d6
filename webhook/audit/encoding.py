"""JSON of audit records: one line without terminal control characters."""

import json

import orjson

from webhook.kube.text import safe_json


def dump(value: object) -> bytes:
    r"""Return `value` as JSON, with terminal control characters as `\u` escapes."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair (from an exception's text) or an integer over 64 bits. An inexact value is better
        # than none.
        text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
        data = text.encode("utf-8", "replace")
    return data if data.isascii() and b"\x7f" not in data else safe_json(data)
