"""Make the parts of the Helm chart that come from other manifests, and the table of its values.

A chart can read no files outside its folder, so it has copies.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import DEPLOY, DOCS
from tools.tables import Row, with_table

CHART = DEPLOY / "chart"
PAGE = DOCS / "helm.md"

_COPIES = (
    "base/mutatingwebhookconfiguration.yaml",
    "base/policy.yaml",
    "crd/placementpolicies.yaml",
    "monitoring/dashboard.json",
    "monitoring/rules.yaml",
)


def files() -> Mapping[Path, str]:
    """Return the folder `files` of the chart, and docs/helm.md with the table of the values."""
    copies = {path.rpartition("/")[2]: (DEPLOY / path).read_text() for path in _COPIES}
    role, _, _ = (DEPLOY / "base" / "rbac.yaml").read_text().partition("---\n")
    _, console_role, *_ = (DEPLOY / "overlays" / "console" / "rbac.yaml").read_text().split("---\n")
    copies |= {"clusterrole.yaml": role, "console-clusterrole.yaml": console_role}
    table = with_table(PAGE.read_text(), ("value", "default", "meaning"), values())
    return {CHART / "files" / name: text for name, text in copies.items()} | {PAGE: table}


def values() -> Iterator[Row]:
    """Return path, default and description of each value, in the order of values.yaml."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    yield from _values_of(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "")


def _values_of(defaults: dict[str, Any], schema: dict[str, Any], prefix: str) -> Iterator[Row]:
    for name, default in defaults.items():
        described = schema["properties"][name]
        if default and "description" in described and _is_group(described):
            yield from _values_of(default, described, f"{prefix}{name}.")
        else:
            yield f"`{prefix}{name}`", _shown(default), described["description"]


def _is_group(schema: dict[str, Any]) -> bool:
    """Return whether the fields of an object are values of the chart, and not of Kubernetes."""
    return all("description" in each for each in schema.get("properties", {"": {}}).values())


def _shown(default: object) -> str:
    if default == "":
        return "empty"
    text = json.dumps(default, ensure_ascii=False) if isinstance(default, dict | list | bool) else str(default)
    return f"`{text}`" if len(text) <= 60 else "see `values.yaml`"
