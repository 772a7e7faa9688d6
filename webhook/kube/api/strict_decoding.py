"""Find the fields of an object that the API server does not know, in the words of its strict decoding."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

_MOST = 20
_POD_TEMPLATE = "core.v1.PodTemplateSpec"


def unknown_fields(content: Mapping[str, Any], templates: Iterable[tuple[str, Any]] = ()) -> list[str]:
    """Return `unknown field "spec.template.annotations"` for each unknown field of `content`, the first 20.

    Only the kinds of Kubernetes that create pods are known; their fields are those of the newest release. Of another
    kind, only the pod templates are checked, which are `templates` with their paths in `content`.

    Source: sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go, UnknownFieldStrict
    """
    kind = f"{content.get('apiVersion')}/{content.get('kind')}"
    if kind in _fields():
        found = _unknown(content, kind, "")
    else:
        found = chain.from_iterable(_unknown(value, _POD_TEMPLATE, path) for path, value in templates)
    return [f'unknown field "{path}"' for path in islice(found, _MOST)]


def _unknown(value: Any, type_name: str, path: str) -> Iterator[str]:
    known = _fields().get(type_name)
    if known is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, type_name, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            inner_path = f"{path}.{name}" if path else name
            if name not in known:
                yield inner_path
            elif known[name]:
                yield from _unknown(inner, known[name], inner_path)


@cache
def _fields() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of each type, each with the type of its value or of its items."""
    found: Mapping[str, Mapping[str, str]] = orjson.loads(Path(__file__).with_name("fields.json").read_bytes())
    return found
