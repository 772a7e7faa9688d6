"""Which pending pods wait for a scheduler, and what is kept of them."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.pods.pending import Object, pending, with_fields
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.random.pod_fields import CHANGES, with_field
from tests.support.random.random_pods import pods
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.pods.pending_pods import PendingPod, PendingPods, PodKey, is_pending, pending_changes
from webhook.documents.documents import Document
from webhook.placement.scorer import PodSignature

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
FAILED = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}


def unschedulable(message: Any) -> Object:
    return pending(conditions=[{**UNSCHEDULABLE, "message": message}])


VOLCANO = "pod group is not ready, {}; Pending: 3 Unschedulable"
SIBLINGS = "0/1 nodes are available: pre-filter pod g-0 cannot find enough sibling pods, current pods number: 3, "


@pytest.mark.parametrize(
    ("pod", "is_waiting"),
    [
        pytest.param(pending(), True, id="no scheduler has said anything"),
        pytest.param(pending(conditions=[UNSCHEDULABLE]), False, id="it is unschedulable"),
        pytest.param(unschedulable(VOLCANO.format("3 Pending, 4 minAvailable")), True, id="Volcano: too few exist"),
        pytest.param(
            unschedulable(VOLCANO.format("1 Running, 10 minAvailable, 3 Pending")), True, id="Volcano: in any order"
        ),
        pytest.param(
            unschedulable(VOLCANO.format("4 Pending, 4 minAvailable")), False, id="Volcano: all of the gang exist"
        ),
        pytest.param(
            unschedulable(VOLCANO.format("1 Running, 3 Pending, 4 minAvailable")), False, id="Volcano: one of them runs"
        ),
        pytest.param(unschedulable(SIBLINGS + "minMember of group: 4."), True, id="Coscheduling: too few exist"),
        pytest.param(unschedulable(None), False, id="no message"),
        pytest.param(pending(conditions=[FAILED]), True, id="its scheduler tries again at once"),
        pytest.param(with_fields(pending(), spec={"schedulingGates": [{"name": "g"}]}), False, id="it is gated"),
        pytest.param(with_fields(pending(), {"deletionTimestamp": "2026-01-01T00:00:00Z"}), False, id="it is dying"),
        pytest.param(with_fields(pending(), spec={"schedulerName": "volcano"}), True, id="of another scheduler"),
    ],
)
def test_pods_that_wait_for_a_scheduler(pod: Object, is_waiting: bool) -> None:
    assert PendingPod.of(pod).is_waiting is is_waiting


def test_bound_and_ended_pods_are_not_pending() -> None:
    assert is_pending(pending())
    assert not is_pending(make_pod("p").node_name("a").obj())
    assert not is_pending(make_pod("p").status(phase="Failed").obj())


def test_pods_of_one_template_have_equal_contents() -> None:
    def pod(name: str, token: str, command: str) -> Object:
        container = {"name": "main", "image": "i", "command": [command], "env": [{"name": "A", "value": token}]}
        volumes = [{"name": f"kube-api-access-{token}", "projected": {"sources": []}}]
        return with_fields(pending(name), {"uid": token}, {"containers": [container], "volumes": volumes})

    first, second = PendingPod.of(pod("p-1", "abcde", "run")), PendingPod.of(pod("p-2", "fghij", "sleep"))
    assert first.content == second.content
    assert (first.identity.token_volume, second.identity.token_volume) == (
        "kube-api-access-abcde",
        "kube-api-access-fghij",
    )


def test_content_is_what_a_scheduler_reads() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    pod = with_fields(pending(), {"labels": {"a": "b"}, "ownerReferences": [owner], "uid": "7"})
    read = PendingPod.of(pod).object()
    assert read["metadata"] == {
        "labels": {"a": "b"},
        "ownerReferences": [owner],
        "namespace": "x",
        "name": "p",
        "uid": "7",
    }
    assert read["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_annotations_of_schedulers_are_kept_and_others_are_not() -> None:
    read = {"scheduling.k8s.io/group-name": "g", "gpu-fraction": "0.5", "gpu-memory": "2000"}
    pod = with_fields(pending(), {"annotations": {**read, "note": "x"}})
    assert PendingPod.of(pod).object()["metadata"]["annotations"] == read


@given(pods(), st.lists(st.sampled_from(CHANGES), max_size=4))
def test_a_scheduler_reads_the_same_of_a_pending_pod_as_of_the_whole_pod(
    pod: Object, changes: list[tuple[str, str, Any]]
) -> None:
    for change in changes:
        pod = with_field(pod, *change)
    # An API server writes its maps in order.
    whole = orjson.loads(orjson.dumps(with_fields(pod, {"namespace": "x"}), option=orjson.OPT_SORT_KEYS))

    assert PodSignature.of(PendingPod.of(whole).object()) == PodSignature.of(whole)


@pytest.mark.parametrize("pod", [{}, {"metadata": 7, "spec": {}}, {"metadata": {}, "spec": []}])
def test_malformed_pod_has_no_content(pod: Object) -> None:
    assert PendingPod.of(pod).content == b""


def test_content_that_is_nested_too_deeply_is_dropped() -> None:
    nested: Object = {}
    for _ in range(600):
        nested = {"a": nested}
    nested_spec = {"affinity": {"a": nested}}
    assert PendingPod.of(with_fields(pending(), spec=nested_spec)).content == b""


def test_pending_pods_of_a_file_come_in_its_order() -> None:
    objects = [make_node_object("a"), pending("second"), pending("first"), make_pod("bound").node_name("a").obj()]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    assert [*snapshot.pending] == [PodKey("x", "second"), PodKey("x", "first")]


def test_what_is_kept_of_a_pod_is_bounded() -> None:
    terms = [{"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]} for number in range(1000)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert PendingPod.of(with_fields(pending(), spec={"affinity": affinity})).content == b""


@pytest.mark.parametrize("is_derived", [True, False], ids=["from the table before", "read anew"])
def test_changes_are_pods_that_are_new_or_other_objects_and_keys_that_are_gone(*, is_derived: bool) -> None:
    made = {name: PendingPod.of(pending(name)) for name in ("same", "changed", "gone", "new")}
    before = PendingPods({made[name].key: made[name] for name in ("same", "changed", "gone")}, None, ())
    replaced = replace(made["changed"], priority=9)
    after = {each.key: each for each in (made["same"], replaced, made["new"])}
    keys = [made[name].key for name in ("new", "gone", "changed")]

    changed, gone = pending_changes(before, PendingPods(after, before, keys) if is_derived else after)

    assert sorted(each.key.name for each in changed) == ["changed", "new"]
    assert all(each is after[each.key] for each in changed)
    assert gone == [made["gone"].key]
    assert pending_changes(before, before) == ([], [])
