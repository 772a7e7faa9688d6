"""A fake API server that lists a few objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api

REQUIRED = {"Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes", "Pod": "/api/v1/pods"}


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a list without the kinds of its items, as an API server does."""
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": list(items)}


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    """Return an API server with two nodes that serves only the required kinds."""
    with fake_api() as api:
        api.objects = {
            REQUIRED["Namespace"]: listing({"metadata": {"name": "team-a"}}),
            REQUIRED["Node"]: listing(*(make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in "ab")),
            REQUIRED["Pod"]: listing(),
            "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"},
        }
        yield api


@pytest.fixture
def kubeconfig(api: FakeConfigurationApi, tmp_path: Path) -> Path:
    return api.kubeconfig(tmp_path)
