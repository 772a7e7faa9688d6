"""The names of the fields of the kinds of Kubernetes that create pods, from its OpenAPI document.

`python -m tools.api_fields SWAGGER` writes `webhook/kube/api/fields.json`; SWAGGER is `api/openapi-spec/swagger.json`
of the newest release.
"""

import json
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[1] / "webhook/kube/api/fields.json"
KINDS = {
    "v1": ("Pod", "ReplicationController"),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
}


def api_fields(definitions: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return by kind or type its fields, each with the type of its value or of its items; empty for one without fields.

    A kind has its API version before its name.
    """
    found: dict[str, dict[str, str]] = {}
    waiting = [
        (f"{version}/{kind}", f"io.k8s.api.{version.replace('/', '.') if '/' in version else 'core.v1'}.{kind}")
        for version, kinds in KINDS.items()
        for kind in kinds
    ]
    for key, name in waiting:
        if key in found:
            continue
        found[key] = {}
        for field, schema in definitions[name].get("properties", {}).items():
            reference = schema.get("items", schema).get("$ref", "").removeprefix("#/definitions/")
            # Users write no status.
            has_fields = field != "status" and reference and "properties" in definitions[reference]
            found[key][field] = _short(reference) if has_fields else ""
            waiting += [(_short(reference), reference)] if has_fields else []
    return found


def _short(name: str) -> str:
    """Return the name of a type with its group: `core.v1.PodSpec`."""
    return ".".join(name.split(".")[-3:])


if __name__ == "__main__":
    fields = api_fields(json.loads(Path(sys.argv[1]).read_text())["definitions"])
    lines = (f"{json.dumps(name)}: {json.dumps(fields[name], sort_keys=True)}" for name in sorted(fields))
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
