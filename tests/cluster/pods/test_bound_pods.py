"""The facts of bound pods that decide whether they may be moved."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.objects.moves import running
from tests.support.preemption import budget
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.left_out import LeftOut
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND
from webhook.cluster.pods.bound_pods import BoundPod, Controller
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput


def test_only_the_owner_that_controls_the_pod_is_its_controller() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}
    pod = running("p", "a").obj()
    pod["metadata"]["ownerReferences"].insert(0, owner)

    assert BoundPod.of(pod).controller == Controller("apps/v1", "ReplicaSet", "app")
    pod["metadata"]["ownerReferences"] = [owner]
    assert BoundPod.of(pod).controller is None


def test_the_replacement_is_the_pod_without_node_and_status() -> None:
    pod = running("p", "a", 2).uid("u").creation("2026-03-01T00:00:00Z")

    replacement = BoundPod.of(pod.obj()).replacement()

    assert "nodeName" not in replacement["spec"]
    assert replacement["spec"]["containers"] == pod.obj()["spec"]["containers"]
    assert set(replacement) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(replacement["metadata"]) == {"name", "namespace", "labels", "ownerReferences"}


def test_pods_that_do_not_occupy_a_node_are_left_out() -> None:
    pods = [make_pod("pending"), running("ended", "a").status(phase="Succeeded"), running("p", "a")]

    found = Disruptions.of(Snapshot.of(()), [Document("f", pod.obj()) for pod in pods])

    assert [pod.name for pod in found.bound["a"]] == ["p"]
    assert found.bound.keys() == {"a"}


def test_every_error_names_the_place_and_the_object() -> None:
    pod = running("p", "a").obj()
    pod["metadata"]["ownerReferences"] = "me"

    with pytest.raises(InvalidInput) as raised:
        Disruptions.of(Snapshot.of(()), [Document("f, document 1", pod)])

    assert [error.path for error in raised.value.errors] == ["f, document 1: Pod team-a/p: metadata.ownerReferences"]


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", None])
@pytest.mark.parametrize("is_terminating", [True, False])
@pytest.mark.parametrize("ready", ["True", "False", None])
def test_budgets_do_not_protect_pods_that_end_or_have_not_started(
    phase: str | None, ready: str | None, *, is_terminating: bool
) -> None:
    """Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go, canIgnorePDB"""
    conditions = [{"type": "PodScheduled", "status": "True"}]
    conditions += [] if ready is None else [{"type": "Ready", "status": ready}]
    pod = make_pod("p").node_name("a").status(conditions=conditions, **({"phase": phase} if phase else {}))
    pod = pod.deletion("2026-03-01T00:00:00Z") if is_terminating else pod

    found = BoundPod.of(pod.obj())

    assert (found.is_terminating, found.is_ready) == (is_terminating, ready == "True")
    assert found.is_disruptable is (is_terminating or phase == "Pending")


WEB = budget(1)
OTHER = budget(2)


@pytest.mark.parametrize(
    ("left_out", "are_known"),
    [
        pytest.param({}, True, id="all are there"),
        pytest.param({("ReplicaSet", "default"): {"a"}}, True, id="an object of another kind is left out"),
        pytest.param({(DISRUPTION_BUDGET_KIND, "default"): {"large"}}, False, id="one is too large"),
        pytest.param({(DISRUPTION_BUDGET_KIND, "elsewhere"): {"large"}}, False, id="one of another namespace is"),
    ],
)
def test_budgets_are_known_unless_one_is_left_out(
    left_out: dict[tuple[str, str], set[str]], *, are_known: bool
) -> None:
    """A pod may be selected by a budget that is left out, so that its eviction could not be allowed."""
    snapshot = Snapshot.of((), disruption_budgets=(WEB, OTHER), left_out=LeftOut(left_out))

    found = Disruptions.of(snapshot, [Document("f", running("p", "a").obj())])

    assert found.budgets == ({"default": [WEB, OTHER]} if are_known else None)
    assert [pod.name for pod in found.bound["a"]] == ["p"]


def test_budgets_of_a_cluster_that_does_not_list_them_are_not_known() -> None:
    assert Disruptions.of(Snapshot.of(()), []).budgets is None
    assert Disruptions.of(Snapshot.of((), disruption_budgets=()), []).budgets == {}
