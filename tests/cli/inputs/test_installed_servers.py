"""The servers of an installation: whose pods the Service selects, and which endpoints are ready."""

from typing import Any

import pytest

from webhook.cli.inputs.installed_servers import mounted, ready_endpoints, servers_of

OWN = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "server"}


def workload(name: str, namespace: str = "own", **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        ({"ready": True}, True),
        ({"ready": False}, False),
        pytest.param({}, True, id="not stated, which the API says to read as ready"),
        pytest.param({"ready": False, "serving": True, "terminating": True}, False, id="a pod that ends"),
    ],
)
def test_an_endpoint_is_ready_unless_its_slice_says_otherwise(conditions: dict[str, bool], is_ready: bool) -> None:
    endpoint = {"conditions": conditions, "targetRef": {"name": "pod"}}
    slices: list[dict[str, Any]] = [{"endpoints": None}, {"endpoints": [endpoint]}]

    assert ready_endpoints(slices) == ([(endpoint, slices[1])] if is_ready else [])


@pytest.mark.parametrize(
    ("service", "found"),
    [
        pytest.param({"spec": {"selector": {"app": "a"}}}, "a", id="the Service selects by one of two labels"),
        pytest.param({"spec": {"selector": {"app": "a", "tier": "x"}}}, None, id="a label is missing"),
        pytest.param(None, "shipped", id="no Service: the labels of the manifests"),
        pytest.param({"spec": {}}, "shipped", id="a Service without a selector"),
    ],
)
def test_the_servers_are_in_the_namespace_and_selected_by_the_service(
    service: dict[str, Any] | None, found: str | None
) -> None:
    workloads = [
        workload("a", namespace="other", app="a", **OWN),
        workload("b", app="b"),
        workload("a", app="a", release="r"),
        workload("shipped", **OWN),
        workload("later", **OWN),
    ]

    servers = servers_of(workloads, service, "own")

    assert (servers["metadata"]["name"] if servers else None) == found
    assert servers is None or servers["metadata"]["namespace"] == "own"


def test_a_mount_is_found_by_its_folder_and_the_kind_of_its_volume() -> None:
    container = {
        "volumeMounts": [
            {"name": "tls", "mountPath": "/etc/tls"},
            {"name": "policy", "mountPath": "/etc/policy/"},
            {"name": "more", "mountPath": "/etc/policy/more"},
        ]
    }
    volumes = [
        {"name": "more", "configMap": {"name": "more"}},
        {"name": "tls", "secret": {"secretName": "pair"}},
        {"name": "policy", "configMap": {"name": "own-policy"}},
    ]
    servers = {"spec": {"template": {"spec": {"volumes": volumes}}}}

    assert mounted(servers, container, "/etc/policy", "configMap", "name") == "own-policy"
    assert mounted(servers, container, "/etc/tls", "secret", "secretName") == "pair"
    assert mounted(servers, container, "/etc/tls", "configMap", "name") is None
    assert mounted(servers, container, "/etc", "configMap", "name") is None
