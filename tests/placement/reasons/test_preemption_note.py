"""The note on evictions: none, not predicted, or not for the devices that the pod lacks."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.hyper_nodes import VolcanoObjects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import Placement
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.reasons.preemption_note import preemption_note
from webhook.placement.scheduler import PodSignature

CLAIMING = make_pod().namespace("default").spec(resourceClaims=claiming("wanted"))
NO_DEVICES = "preemption frees no devices: kube-scheduler evicts no pod for the devices of ResourceClaims"
NONE = PredictedPreemption()


def cluster(*claims: str, taken: bool = True) -> Snapshot:
    """Return a node with one card, which another claim has taken or not, and `claims` for one card each."""
    other = make_resource_claim("other", exactly())
    objects = [make_node_object("a"), make_device_class(), make_slice("a", *make_cards(1))]
    objects += [allocated(other, "a", "card-0") if taken else other]
    objects += [make_resource_claim(name, exactly()) for name in claims]
    return snapshot_from_documents(Document("cluster", each) for each in objects)


def note(
    pod: PodBuilder = CLAIMING,
    snapshot: Snapshot | None = None,
    preemption: PredictedPreemption | None = NONE,
    *,
    verdict: Any = "Waiting",
    backend: str = "",
    without_pods: tuple[str, ...] = ("a",),
) -> str:
    nodes = cluster("wanted") if snapshot is None else snapshot
    placement = replace(Placement("Waiting", None, 1, 0, "0/1 nodes"), verdict=verdict, preemption=preemption)
    info = PodSignature.of(pod.obj()).info.normalized_for(nodes)
    return preemption_note(backend, DEFAULT, info, nodes, placement, without_pods)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(lambda: note(), NO_DEVICES, id="the card is taken"),
        pytest.param(lambda: note(snapshot=cluster("wanted", taken=False)), "", id="the card is free"),
        pytest.param(lambda: note(snapshot=cluster()), "", id="the claim does not exist yet"),
        pytest.param(lambda: note(make_pod().gpu(9)), "", id="the pod has no claim"),
        pytest.param(lambda: note(without_pods=()), "", id="no node could take it"),
        pytest.param(lambda: note(verdict="Feasible"), "", id="it fits"),
        pytest.param(lambda: note(verdict="Infeasible"), "", id="it never fits"),
        pytest.param(lambda: note(CLAIMING.spec(schedulingGates=[{"name": "x"}])), "", id="a gate holds it"),
        pytest.param(lambda: note(CLAIMING.spec(preemptionPolicy="Never")), "", id="it never preempts"),
        pytest.param(lambda: note(preemption=None), "", id="evictions were not evaluated"),
        pytest.param(lambda: note(preemption=PredictedPreemption(candidates=1)), "", id="there are evictions"),
        pytest.param(
            lambda: note(preemption=PredictedPreemption(is_exact=False, why="budgets")),
            "not known: budgets",
            id="it is not known which",
        ),
    ],
)
def test_note_for_kube_scheduler(found: Any, expected: str) -> None:
    assert found() == expected


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param(
            None,
            "not known: Volcano may evict pods of its queue: its ConfigMap volcano-system/volcano-scheduler-configmap "
            "is not known",
            id="no configuration",
        ),
        pytest.param(
            ["enqueue", "allocate", "backfill"],
            "Volcano evicts no pod: its configuration has no action preempt or reclaim",
            id="none evicts",
        ),
        pytest.param(
            ["allocate", "preempt"], "not known: Volcano may evict pods of its queue (action preempt)", id="preempt"
        ),
        pytest.param(
            ["reclaim", "preempt"],
            "not known: Volcano may evict pods of its queue or of other queues (actions preempt, reclaim)",
            id="both",
        ),
        pytest.param(["shuffle"], "not known: Volcano may evict pods (action shuffle)", id="another action"),
    ],
)
def test_note_for_volcano_follows_its_actions(actions: list[str] | None, expected: str) -> None:
    configuration = None if actions is None else VolcanoConfiguration(frozenset(actions))
    snapshot = replace(cluster("wanted"), volcano=VolcanoObjects(configuration=configuration))

    assert note(snapshot=snapshot, backend="volcano") == expected
    assert note(snapshot=snapshot, backend="volcano", verdict="Feasible") == ""


def test_evictions_of_kai_are_not_predicted() -> None:
    assert note(backend="kai").startswith("not known: KAI may evict pods")
    assert note(backend="kai", verdict="Infeasible") == ""
