"""The policy of an installed server: in its ConfigMap, from a replica, and as PlacementPolicy objects."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from webhook.cli.inputs import installed_policy
from webhook.cli.inputs.installed_policy import StoredPolicy, ask_replica, read_policy_objects
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

SLICES = "/apis/discovery.k8s.io/v1/namespaces/own/endpointslices"
REPLICA = "/api/v1/namespaces/own/pods/b:8080/proxy/policy"
OBJECTS = "/apis/placement.maip.mxsf.io/v1alpha1/placementpolicies"
POLICY = built_in_policy().document.model_dump(mode="json", by_alias=True)


def servers(*arguments: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"args": ["serve", *arguments]}]}}}}


OPEN = servers("--admin-listen=0.0.0.0:8080")


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    """Return an API server with three endpoints: one that is not ready, one without a pod, and a replica."""
    endpoints = [
        {"conditions": {"ready": False}, "targetRef": {"name": "a"}},
        {"conditions": {"ready": True}},
        {"conditions": {"ready": True}, "targetRef": {"name": "b"}},
        {"conditions": {"ready": True}, "targetRef": {"name": "c"}},
    ]
    with fake_api() as api:
        api.objects = {SLICES: {"items": [{"endpoints": endpoints}]}, REPLICA: {"policy": POLICY}}
        yield api


def asked(api: FakeConfigurationApi, folder: Path, workload: dict[str, Any] = OPEN) -> Policy | None:
    async def ask() -> Policy | None:
        async with ClientConfig(api.kubeconfig(folder)).connect() as server:
            return await ask_replica(server, workload, "own", "svc")

    return asyncio.run(ask())


def test_the_first_replica_that_is_ready_reports_its_policy(api: FakeConfigurationApi, tmp_path: Path) -> None:
    found = asked(api, tmp_path)

    assert found is not None
    assert found.identity == built_in_policy().identity
    assert api.reads == [SLICES, REPLICA]


@pytest.mark.parametrize(
    "workload",
    [
        servers(),
        servers("--admin-listen=127.0.0.1:8080"),
        servers("--admin-listen=0.0.0.0:8080", "--admin-token-file=t"),
    ],
    ids=["the default", "loopback", "a token"],
)
def test_an_admin_port_that_cannot_be_reached_is_not_asked(
    api: FakeConfigurationApi, tmp_path: Path, workload: dict[str, Any]
) -> None:
    assert asked(api, tmp_path, workload) is None
    assert api.reads == []


def test_without_a_replica_that_is_ready_none_is_asked(api: FakeConfigurationApi, tmp_path: Path) -> None:
    api.objects[SLICES] = {"items": [{"endpoints": [{"conditions": {"ready": False}, "targetRef": {"name": "b"}}]}]}

    assert asked(api, tmp_path) is None
    assert api.reads == [SLICES]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"policy": {"spec": {"foo": 1}}},
        {"policy": {**POLICY, "spec": {"foo": 1}}},
    ],
    ids=["another answer", "no policy", "a policy of another version"],
)
def test_an_answer_that_is_no_policy_is_passed_over(
    api: FakeConfigurationApi, tmp_path: Path, answer: dict[str, Any]
) -> None:
    api.objects[REPLICA] = answer

    assert asked(api, tmp_path) is None


@pytest.mark.parametrize("path", [SLICES, REPLICA])
def test_a_replica_that_cannot_be_asked_is_passed_over(api: FakeConfigurationApi, tmp_path: Path, path: str) -> None:
    api.refused = {path: 403}

    assert asked(api, tmp_path) is None


def test_a_replica_that_does_not_answer_in_time_is_passed_over(
    api: FakeConfigurationApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed_policy, "_REPLICA_SECONDS", 0.0)

    assert asked(api, tmp_path) is None


def test_objects_of_a_kind_that_is_not_served_differ_from_none(api: FakeConfigurationApi, tmp_path: Path) -> None:
    async def read() -> Any:
        async with ClientConfig(api.kubeconfig(tmp_path)).connect() as server:
            return await read_policy_objects(server)

    assert asyncio.run(read()) is None
    api.objects[OBJECTS] = {"items": []}
    assert asyncio.run(read()) == []
    api.objects[OBJECTS] = {"items": [{"metadata": {"name": "a"}}]}
    assert asyncio.run(read()) == [{"metadata": {"name": "a"}}]
    api.refused = {OBJECTS: 403}
    with pytest.raises(ApiServerError):
        asyncio.run(read())


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"data": {"other.yaml": "a"}}, "it has no key policy.yaml"),
        ({}, "it has no key policy.yaml"),
        ({"data": {"policy.yaml": "kind: Pod"}}, "policy.yaml"),
    ],
)
def test_a_config_map_without_a_valid_policy_has_its_errors(data: dict[str, Any], error: str) -> None:
    found = StoredPolicy.of(data, "own", "policy.yaml")

    assert (found.name, found.policies) == ("own", None)
    assert error in found.errors[0]
