"""Make the parts of the Helm chart that come from other manifests, and the table of its values, for `make rules`.

A chart can read no files outside its folder, so it has copies.
"""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.support.objects.manifests import DEPLOY, ROOT

CHART = DEPLOY / "chart"
PAGE = ROOT / "docs" / "helm.md"

_COPIES = (
    "base/mutatingwebhookconfiguration.yaml",
    "base/policy.yaml",
    "crd/placementpolicies.yaml",
    "monitoring/dashboard.json",
    "monitoring/rules.yaml",
)
_BEGIN = "<!-- Begin of the generated table: `make rules`. -->\n"
_END = "<!-- End of the generated table. -->\n"


def files() -> dict[str, str]:
    """Return the content of each generated file in the folder `files` of the chart."""
    copies = {path.rpartition("/")[2]: (DEPLOY / path).read_text() for path in _COPIES}
    role, _, _ = (DEPLOY / "base" / "rbac.yaml").read_text().partition("---\n")
    _, console_role, *_ = (DEPLOY / "overlays" / "console" / "rbac.yaml").read_text().split("---\n")
    return copies | {"clusterrole.yaml": role, "console-clusterrole.yaml": console_role}


def page() -> str:
    """Return docs/helm.md with the table of the values."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = [f"| `{path}` | {default} | {text} |\n" for path, default, text in values()]
    return f"{before}{_BEGIN}| value | default | meaning |\n|---|---|---|\n{''.join(rows)}{_END}{after}"


def values() -> Iterator[tuple[str, str, str]]:
    """Return path, default and description of each value, in the order of values.yaml."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    yield from _values_of(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "")


def _values_of(defaults: dict[str, Any], schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, default in defaults.items():
        described = schema["properties"][name]
        if default and "description" in described and _is_group(described):
            yield from _values_of(default, described, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _shown(default), described["description"]


def _is_group(schema: dict[str, Any]) -> bool:
    """Return whether the fields of an object are values of the chart, and not of Kubernetes."""
    return all("description" in each for each in schema.get("properties", {"": {}}).values())


def _shown(default: object) -> str:
    if default == "":
        return "empty"
    text = json.dumps(default, ensure_ascii=False) if isinstance(default, dict | list | bool) else str(default)
    return f"`{text}`" if len(text) <= 60 else "see `values.yaml`"


def main() -> None:
    """Write the files and the table."""
    for name, content in files().items():
        (CHART / "files" / name).write_text(content)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
