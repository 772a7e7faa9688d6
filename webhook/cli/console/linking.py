"""Joins the modules of the front end into one script, for a report: a file cannot load modules of its own.

The modules keep to one form (static/README.md), so that this needs no parser: imports of names at the top, `export`
before a declaration. Each becomes a function that returns what it exports; it is called after those that it imports.
"""

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


class LinkError(Exception):
    """A module is not of the form that can be joined."""


def linked(modules: Mapping[str, str], entry: str) -> str:
    """Return one script with `entry` and what it imports; `modules` are their sources by path.

    The script defines `modules`, with what each module exports by its path.

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
