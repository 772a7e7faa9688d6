"""Write the pages of the console for one moment as one HTML file that loads nothing.

The data are compressed and in base64, so a tenant's text cannot close the HTML element. The Content-Security-Policy of
the file allows only its one script, by hash, and no connections.

A file cannot load modules, so the modules of the front end are joined into one script. They have a fixed form
(static/README.md), with imports of names at the top and `export` before a declaration, so that no parser is needed.
Each module becomes a function that returns its exports. It is called after the modules that it imports.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from itertools import starmap
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import urlencode

import orjson

from placement_console.application import all_endpoints, static_files
from placement_console.cluster_state import ClusterState
from placement_console.page import Asked, Endpoint, NotFoundError, Sources
from webhook.documents.field import InvalidInput
from webhook.documents.text import json_bytes

_ENTRY = "report.js"
_ASSET_TYPES = (".js", ".css")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def report_of(sources: Sources, time: str) -> bytes:
    """Return the report of `sources`, whose view must be synced. `time` is the time of the report in RFC 3339.

    Raises:
        InvalidInput: an input of a page cannot be read.
    """
    state = ClusterState(sources.session.rules.default, sources.facts)
    snapshot = sources.view.snapshot()
    whole = orjson.loads(state.full(snapshot, sources.view.age_seconds(), sources.name))
    asked = ((each, Asked(snapshot, query)) for each in all_endpoints(sources) for query in each.reported())
    answers = dict(starmap(_recorded, asked))
    data = json_bytes({"time": time, "state": whole, "answers": answers})
    return _page(base64.b64encode(gzip.compress(data, 9, mtime=0)).decode())


def _recorded(endpoint: Endpoint, asked: Asked) -> tuple[str, Any]:
    """Return the URL of a request, as the front end requests it, and its answer."""
    address = f"{endpoint.path}?{urlencode(asked.query)}" if asked.query else endpoint.path
    try:
        return address, endpoint.answer(asked)
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


class LinkError(Exception):
    """A module does not have the form that can be joined."""


def linked(modules: Mapping[str, str], entry: str) -> str:
    """Return one script with `entry` and its imports. `modules` are the sources by path.

    The script defines `modules`, the exports of each module by its path.

    Raises:
        LinkError: a module is missing, imports in a circle, or has another form of import or export.
    """
    written: dict[str, str] = {}
    _add(entry, modules, written, ())
    return '"use strict";\nconst modules = {};\n' + "".join(written.values())


def imports_of(path: str, source: str) -> list[tuple[str, str]]:
    """Return the names that a module imports, as written, each with the path of the other module."""
    return [(names, normpath(join(dirname(path), other))) for names, other in _IMPORT.findall(source)]


def _add(path: str, modules: Mapping[str, str], written: dict[str, str], within: tuple[str, ...]) -> None:
    if path in written:
        return
    if path in within or path not in modules:
        raise LinkError(f"{path}: {'imports itself' if path in within else 'is missing'}: {' > '.join(within)}")
    source, head = modules[path], ""
    for names, other in imports_of(path, source):
        _add(other, modules, written, (*within, path))
        head += f"const {{{names}}} = modules[{other!r}];\n"
    exported = _EXPORT.findall(source)
    body = _EXPORT.sub("", _IMPORT.sub("", source))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise LinkError(f"{path}: only `import {{ … }} from` and `export function, class, const` can be joined")
    written[path] = f"modules[{path!r}] = (() => {{\n{head}{body}return {{ {', '.join(exported)} }};\n}})();\n"
