"""The last output of containers, and names and addresses that placement does not read, are removed."""

import copy
import json
from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from webhook.cli.inputs.private_fields import without_secrets


def test_messages_and_private_names_are_left_out() -> None:
    terminated = {"terminated": {"exitCode": 1, "message": "secret-1"}}
    pod = (
        make_pod("web")
        .spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["secret-2"]}], serviceAccountName="secret-3")
        .status(
            message="secret-4",
            conditions=[{"type": "Ready", "status": "False", "message": "secret-5"}],
            containerStatuses=[
                {"name": "main", "state": terminated, "lastState": terminated, "resources": {}},
                {"name": "side", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "secret-6"}}},
            ],
        )
        .obj()
    )

    shared = without_secrets(pod)

    assert "secret" not in json.dumps(shared)
    assert shared["status"]["containerStatuses"] == [
        {"name": "main", "resources": {}},
        {"name": "side", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]
    assert shared["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_parameters_of_devices_are_left_out() -> None:
    config = [{"opaque": {"driver": "gpu.example.com", "parameters": {"token": "secret-1"}}}]
    devices = {"requests": [{"name": "card"}], "config": config}
    group = {"apiVersion": "resource.k8s.io/v1"}
    status = {"allocation": {"devices": {"results": [], "config": config}}, "devices": [{"data": {"a": "secret-2"}}]}
    objects: list[dict[str, Any]] = [
        {**group, "kind": "DeviceClass", "spec": {"config": config}},
        {**group, "kind": "ResourceClaim", "spec": {"devices": devices}, "status": status},
        {**group, "kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": devices}}},
        {**group, "kind": "ResourceSlice", "spec": {"devices": [{"name": "card-0"}]}},
    ]

    shared = [without_secrets(copy.deepcopy(each)) for each in objects]

    assert "secret" not in json.dumps(shared)
    assert shared[1]["spec"] == {"devices": {"requests": [{"name": "card"}]}}
    assert shared[1]["status"] == {"allocation": {"devices": {"results": []}}}
    assert shared[3] == objects[3]


def test_the_copy_of_an_object_that_kubectl_apply_keeps_is_left_out() -> None:
    """It repeats the environment variables and commands of the containers."""
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    pod = make_pod("web").annotate(applied, "secret").annotate("example.com/a", "b").obj()
    pod["metadata"]["managedFields"] = [{"manager": "secret"}]

    metadata = without_secrets(pod)["metadata"]

    assert (metadata["annotations"], "managedFields" in metadata) == ({"example.com/a": "b"}, False)


def test_what_containers_run_and_read_is_left_out() -> None:
    secret = [{"name": "TOKEN", "value": "secret"}]
    private = {
        "env": secret,
        "envFrom": secret,
        "command": ["secret"],
        "args": ["secret"],
        "lifecycle": {"a": "secret"},
    }
    private |= {name: {"exec": {"command": ["secret"]}} for name in ("livenessProbe", "readinessProbe", "startupProbe")}
    kept = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}
    parts = ("initContainers", "containers", "ephemeralContainers")
    pod = make_pod("web").spec(**{part: [{**kept, **private}, {**kept, **private}] for part in parts}).obj()

    spec = without_secrets(pod)["spec"]

    assert {part: spec[part] for part in parts} == {part: [kept, kept] for part in parts}


def test_only_the_parameters_of_devices_are_left_out() -> None:
    """Schedulers read fields of such names in objects of other groups."""
    pod = {"apiVersion": "example.com/v1", "kind": "Queue", "spec": {"config": {"a": 1}}, "status": {"devices": [1]}}
    assert without_secrets(copy.deepcopy(pod)) == pod


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")]
)
def test_the_template_of_a_controller_is_left_out(api_version: str, kind: str) -> None:
    """It repeats what its pods have."""
    spec = {"selector": {"app": "a"}, "template": {"spec": {"containers": [{"env": "secret"}]}}}
    shared = without_secrets({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    assert shared["spec"] == {"selector": {"app": "a"}}
