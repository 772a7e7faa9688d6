"""The pages of the console for one moment, as one HTML file that loads nothing.

The data are compressed and in base64, so no text of a tenant can end their element, and the Content-Security-Policy of
the file allows its one script by the hash, and no connection.
"""

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from webhook.cli.console.application import all_endpoints, static_files
from webhook.cli.console.cluster_state import ClusterState
from webhook.cli.console.endpoint import Asked, Endpoint, NotFoundError
from webhook.cli.console.linking import linked
from webhook.cli.console.sources import Sources
from webhook.documents.field import InvalidInput
from webhook.documents.text import json_bytes

_ENTRY = "report.js"
_ASSET_TYPES = (".js", ".css")


def report_of(sources: Sources, time: str, endpoints: Sequence[Endpoint] | None = None) -> bytes:
    """Return the report of `sources`, whose view is synced; `time` is its moment, in RFC 3339.

    Raises:
        InvalidInput: an input of a page cannot be read.
    """
    state = ClusterState(sources.session.rules.default, sources.facts)
    whole = orjson.loads(state.full(sources.view.snapshot(), sources.view.age_seconds(), sources.name))
    answers = dict(_recorded(each) for each in _asked(endpoints if endpoints is not None else all_endpoints(sources)))
    data = json_bytes({"time": time, "state": whole, "answers": answers})
    return _page(base64.b64encode(gzip.compress(data, 9, mtime=0)).decode())


def _asked(endpoints: Sequence[Endpoint]) -> list[tuple[Endpoint, Mapping[str, str]]]:
    return [(each, query) for each in endpoints for query in each.reported()]


def _recorded(asked: tuple[Endpoint, Mapping[str, str]]) -> tuple[str, Any]:
    """Return the address of a request and its answer, as the front end asks for it."""
    endpoint, query = asked
    address = f"{endpoint.path}?{urlencode(query)}" if query else endpoint.path
    try:
        return address, endpoint.answer(Asked(query))
    except (InvalidInput, NotFoundError) as error:
        texts = [*map(str, error.errors)] if isinstance(error, InvalidInput) else [str(error)]
        return address, {"errors": texts}


def _page(data: str) -> bytes:
    assets = {path: file.read_text("utf-8") for path, file in static_files().items() if file.suffix in _ASSET_TYPES}
    script, style = linked(assets, _ENTRY), assets["style.css"]
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    parts = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
        f"<title>placement-webhook report</title>\n<style>{style}</style>\n</head>",
        f'<body>\n<noscript>The report needs JavaScript.</noscript>\n<template id="data">{data}</template>',
        f"<script>{script}</script>\n</body>\n</html>\n",
    )
    return "\n".join(parts).encode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
