"""As many replicas are bound by the real kube-scheduler as are predicted to fit."""

from collections import Counter
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.profiles.profile import PROFILES
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import Scheduler

_WEB = make_pod().label("app", "web")
_SELECTOR = {"labelSelector": {"matchLabels": {"app": "web"}}}


def _affinity(kind: str, key: str) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{**_SELECTOR, "topologyKey": key}]}}


def _spread(key: str, skew: int) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **_SELECTOR}


CASES = {
    "cards": _WEB.gpu(3),
    "cards, packed": _WEB.gpu(3).scheduler("binpack"),
    "apart": _WEB.affinity(_affinity("podAntiAffinity", "kubernetes.io/hostname")),
    "apart by rack": _WEB.gpu(1).affinity(_affinity("podAntiAffinity", "rack")),
    "together in a rack": _WEB.gpu(3)
    .affinity(_affinity("podAffinity", "rack"))
    .prefer_node(100, match_expressions(("rack", "In", ["1"]))),
    "spread over racks": _WEB.gpu(3).spec(topologySpreadConstraints=[_spread("rack", 1)]),
    "a port": _WEB.host_port(8080),
}


RACKS = {"a": "1", "b": "1", "c": "2"}


@pytest.mark.parametrize("pod", CASES.values(), ids=CASES.keys())
def test_as_many_replicas_are_bound_as_are_predicted_to_fit(cluster: Cluster, pod: PodBuilder) -> None:
    asked, cards = 9, {"nvidia.com/gpu": "8"}
    cluster.make_nodes(
        make_node_object("a", labels={"rack": RACKS["a"]}, capacity=cards),
        make_node_object("b", labels={"rack": RACKS["b"]}, capacity=cards),
        make_node_object("c", labels={"rack": RACKS["c"]}, capacity={"nvidia.com/gpu": "4"}),
    )
    documents = [
        Document("cluster", {"apiVersion": "v1", "kind": kind} | each)
        for kind in ("Node", "Namespace", "Pod")
        for each in cluster.client.list(kind)
    ]
    pending = cluster.create(pod, dry_run=True).object
    scheduler = Scheduler(PROFILES["binpack" if pending["spec"]["schedulerName"] == "binpack" else "default"])
    predicted = place_replicas(scheduler, snapshot_from_documents(documents), repeat(pending), asked)
    assert predicted.is_complete

    for index in range(asked):
        made = pod.obj()
        made["metadata"]["name"] = f"web-{index}"
        stored = cluster.create(made).object
        if index < predicted.placed:
            cluster.wait_bound(stored)
        else:
            cluster.wait_unschedulable(stored)

    bound = Counter(each["spec"]["nodeName"] for each in cluster.pods() if each["spec"].get("nodeName"))
    assert bound.total() == predicted.placed < asked
    # Kube-scheduler chooses at random among nodes with equal totals, which are in one rack.
    assert by_rack(bound) == by_rack(predicted.nodes)


def by_rack(nodes: Mapping[str, int]) -> Counter[str]:
    """Return the replicas in each rack."""
    racks: Counter[str] = Counter()
    for node, replicas in nodes.items():
        racks[RACKS[node]] += replicas
    return racks
