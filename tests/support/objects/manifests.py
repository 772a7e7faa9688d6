"""The manifests of deploy/ as objects."""

from pathlib import Path
from typing import Any

from webhook.documents.documents import parse

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"

Object = dict[str, Any]


def read(path: str) -> list[Object]:
    """Return the objects of one file of deploy/."""
    return [document.content for document in parse((DEPLOY / path).read_bytes(), path)]


def read_one(path: str) -> Object:
    (content,) = read(path)
    return content


def pod_template(workload: Object) -> Object:
    template: Object = workload["spec"]["template"]
    return template


def container_of(workload: Object) -> Object:
    (container,) = pod_template(workload)["spec"]["containers"]
    assert isinstance(container, dict)
    return container
