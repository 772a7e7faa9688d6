"""The requests of the claim for extended resources."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import make_device_class
from tests.support.plugins import pod_info
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.placement.dra.extended_resource_claim import extended_resource_claims

Object = dict[str, Any]

_GPU, _NIC = "example.com/gpu", "example.com/nic"
_CLASSES = (make_device_class("gpu", extended_resource=_GPU), make_device_class("nic", extended_resource=_NIC))


def _lots(pod: PodBuilder, *nodes: Object) -> list[tuple[list[int], list[tuple[str, str, int]]]]:
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, *_CLASSES))
    found = []
    for rows, claim in extended_resource_claims(pod_info(pod), snapshot, never).needs:
        requests = [request for choice in (claim.requests if claim else ()) for request in choice.requests]
        found.append((rows.tolist(), [(each.name, each.device_class, each.amount) for each in requests]))
    return found


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        pytest.param(make_pod(), [], id="none"),
        pytest.param(make_pod().gpu(0, _GPU), [], id="zero"),
        pytest.param(
            make_pod().gpu(2, _GPU).requests(cpu=1),
            [("container-0-request-1", "gpu", 2)],
            id="counted among its others",
        ),
        pytest.param(
            make_pod().gpu(1, _NIC).gpu(2, _GPU),
            [("container-0-request-0", "gpu", 2), ("container-0-request-1", "nic", 1)],
            id="two resources",
        ),
        pytest.param(
            make_pod().gpu(2, _GPU).init_container("i", **{_GPU: 2}),
            [("container-1-request-0", "gpu", 2)],
            id="an init container uses those of the containers",
        ),
        pytest.param(
            make_pod()
            .gpu(1, _GPU)
            .init_container("i", **{_GPU: 2})
            .init_container("j", **{_GPU: 4})
            .init_container("k", **{_GPU: 4}),
            [("container-1-request-0", "gpu", 3), ("container-3-request-0", "gpu", 1)],
            id="the first init container that lacks most",
        ),
        pytest.param(
            make_pod().gpu(1, _GPU).sidecar("s", **{_GPU: 1}).init_container("i", **{_GPU: 2}),
            [
                ("container-0-request-0", "gpu", 1),
                ("container-1-request-0", "gpu", 1),
                ("container-2-request-0", "gpu", 1),
            ],
            id="a sidecar before it keeps its own",
        ),
    ],
)
def test_requests(pod: PodBuilder, requests: list[tuple[str, str, int]]) -> None:
    assert _lots(pod, make_node_object("a")) == [([0], requests)]


def test_names_are_sorted_as_text() -> None:
    pod = make_pod().gpu(1, _GPU)
    for number in range(10):
        pod = pod.container(f"c{number}", **{_GPU: 1})
    ((_, requests),) = _lots(pod, make_node_object("a"))
    assert [name for name, _, _ in requests[:3]] == [f"container-{place}-request-0" for place in (0, 1, 10)]


def test_nodes_need_devices_of_what_they_do_not_offer() -> None:
    nodes = [
        make_node_object("a"),
        make_node_object("b", capacity={_GPU: 1}),
        make_node_object("c", capacity={_GPU: 0}),
        make_node_object("d", capacity={_GPU: 1, _NIC: 1}),
    ]
    both = [("container-0-request-0", "gpu", 1), ("container-0-request-1", "nic", 1)]
    assert _lots(make_pod().gpu(1, _GPU).gpu(1, _NIC), *nodes) == [([0, 2], both), ([1], both[1:]), ([3], [])]
