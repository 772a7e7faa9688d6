"""A snapshot of the cache equals a rebuilt snapshot of the same objects."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.cache.caches import Object, cache_of, namespace, pod, whole_cache
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.optional_objects import optional_objects
from tests.support.views import SAID, made_anew, said
from webhook.cluster.cache import cluster_cache
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.object_key import Key
from webhook.cluster.left_out import POD_LABELS
from webhook.cluster.optional_kinds import OPTIONAL_KINDS
from webhook.cluster.snapshot import LARGEST_AMOUNT, Snapshot


def requested(snapshot: Snapshot) -> list[int]:
    return [int(amount) for amount in snapshot.requested("cpu")]


def test_snapshot_is_the_same_until_something_changes() -> None:
    cache = cache_of(make_node_object("a"), pod())
    first = cache.snapshot()
    cache.apply("Pod", "MODIFIED", pod())
    cache.apply(
        "Node", "MODIFIED", make_node_object("a") | {"status": make_node_object("a")["status"] | {"conditions": []}}
    )
    assert cache.snapshot() is first


def test_namespaces_alone_are_those_of_now() -> None:
    cache = ClusterCache()
    assert cache.namespaces_only().namespaces == {}
    cache.apply("Namespace", "ADDED", namespace("x", team="a"))
    first = cache.namespaces_only()
    assert first.namespace_annotations("x") == {"team": "a"}
    assert cache.namespaces_only() is first
    cache.apply("Namespace", "MODIFIED", namespace("x", team="b"))
    assert cache.namespaces_only().namespace_annotations("x") == {"team": "b"}
    cache.apply("Namespace", "DELETED", namespace("x"))
    assert cache.namespaces_only().namespaces == {}


def test_huge_amount_of_an_event_is_capped_as_in_a_list() -> None:
    cache = cache_of(make_node_object("a"))
    cache.snapshot()
    cache.apply("Node", "MODIFIED", make_node_object("a", capacity={"memory": "8Ei"}))
    assert cache.snapshot().allocatable("memory").tolist() == [LARGEST_AMOUNT]


def test_each_change_makes_a_new_generation_and_keeps_the_old_one() -> None:
    cache = cache_of(make_node_object("a"), make_node_object("b"), pod(cpu="1"))
    before = cache.snapshot()
    cache.apply("Pod", "ADDED", pod("q", node_name="b", cpu="2"))
    after = cache.snapshot()
    assert after.generation > before.generation
    assert (requested(before), requested(after)) == ([1000, 0], [1000, 2000])


def test_pods_may_arrive_before_their_node() -> None:
    cache = cache_of(pod(cpu="3"))
    assert cache.snapshot().nodes == ()
    cache.apply("Node", "ADDED", make_node_object("a"))
    assert requested(cache.snapshot()) == [3000]


def test_pods_of_a_node_that_went_and_came_again_count() -> None:
    cache = cache_of(make_node_object("a"), pod(cpu="3"))
    cache.apply("Node", "DELETED", make_node_object("a"))
    assert cache.snapshot().nodes == ()
    cache.apply("Node", "ADDED", make_node_object("a"))
    assert requested(cache.snapshot()) == [3000]


def test_a_pod_that_was_created_again_on_another_node_counts_there() -> None:
    """As a pod of a StatefulSet, if its deletion came while the watch was interrupted."""
    cache = cache_of(make_node_object("a"), make_node_object("b"), pod(cpu="3"))
    cache.snapshot()
    cache.replace("Pod", [pod(node_name="b", cpu="3")])
    assert requested(cache.snapshot()) == [0, 3000]


def test_a_pod_counts_once_after_a_snapshot_that_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_of(make_node_object("a"), pod("p"))
    cache.snapshot()
    cache.apply("Pod", "ADDED", pod("q"))
    with monkeypatch.context() as patch:
        patch.setattr(cluster_cache, "updated", None)
        with pytest.raises(TypeError):
            cache.snapshot()
    assert requested(cache.snapshot()) == [2000]


def test_added_or_deleted_node_keeps_the_pod_classes_shared() -> None:
    others = [
        each
        for name in "bcd"
        for each in (make_node_object(name, labels={"zone": name}), pod(f"on-{name}", name, cpu="2"))
    ]
    cache = cache_of(make_node_object("a"), pod("p", "a", cpu="1"), *others)
    before = cache.snapshot()
    cache.apply("Node", "DELETED", make_node_object("b"))
    cache.apply("Node", "ADDED", make_node_object("aa", taints=["k:NoSchedule"], labels={"zone": "new"}))
    cache.apply("Pod", "MODIFIED", pod("on-d", "d", cpu="5"))
    after = cache.snapshot()
    assert after.pods.classes is before.pods.classes
    assert [info.node.name for info in after.nodes] == ["a", "aa", "c", "d"]
    assert requested(after) == [1000, 0, 2000, 5000]
    assert after.labels.matches("zone", "In", ["b", "new"]).tolist() == [False, True, False, False]
    assert requested(before) == [1000, 2000, 2000, 2000]


def test_ended_pod_does_not_count() -> None:
    cache = cache_of(make_node_object("a"), pod())
    cache.apply("Pod", "MODIFIED", pod() | {"status": {"phase": "Succeeded"}})
    assert requested(cache.snapshot()) == [0]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("node_name", ["a", ""], ids=["on a node", "without a node"])
@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "new"])
def test_pod_in_an_ended_phase_neither_runs_nor_waits(phase: str, node_name: str, *, is_known: bool) -> None:
    """A pod can end without a node: the pod garbage collector and controllers fail pods that are not bound."""
    cache, made = cache_of(make_node_object("a")), make_pod("p").namespace("x")
    made = made.node_name(node_name) if node_name else made
    if is_known:
        cache.apply("Pod", "ADDED", made.obj())
        assert len(cache.snapshot().pending) + len(cache.snapshot().nodes[0].pods) == 1

    cache.apply("Pod", "MODIFIED", made.status(phase=phase).obj())

    assert (dict(cache.snapshot().pending), cache.snapshot().nodes[0].pods) == ({}, ())


def test_repeated_event_counts_once() -> None:
    cache = cache_of(make_node_object("a"))
    for _ in range(2):
        cache.apply("Pod", "ADDED", pod())
    assert requested(cache.snapshot()) == [1000]
    for _ in range(2):
        cache.apply("Pod", "DELETED", pod())
    assert requested(cache.snapshot()) == [0]


def test_list_deletes_objects_that_it_does_not_contain() -> None:
    cache = cache_of(make_node_object("a"), make_node_object("b"), pod("p"), pod("q"), namespace("x"), namespace("y"))
    cache.replace("Pod", [pod("q", cpu="5")])
    cache.replace("Node", [make_node_object("a")])
    cache.replace("Namespace", [namespace("y")])
    assert said(cache.snapshot()) == said(made_anew([make_node_object("a"), pod("q", cpu="5"), namespace("y")]))


def test_list_that_breaks_off_takes_nothing_out() -> None:
    cache = cache_of(make_node_object("a"), pod("p"), pod("q"))
    cache.listing("Pod").add([pod("r")])
    assert requested(cache.snapshot()) == [3000]


def test_malformed_node_is_left_out_and_reported_once() -> None:
    cache = cache_of(make_node_object("a"), make_node_object("b"), pod(cpu="1"))
    bad = make_node_object("a", capacity={"cpu": "many"})
    problems = [cache.apply("Node", "MODIFIED", bad) for _ in range(2)]
    assert problems[0] is not None
    assert problems[1] is None
    assert problems[0].message.startswith('status.allocatable[cpu]: Invalid value: "many"; must be a quantity')
    assert [info.node.name for info in cache.snapshot().nodes] == ["b"]
    assert set(cache.invalid) == {("Node", Key("", "a"))}
    assert cache.apply("Node", "MODIFIED", make_node_object("a")) is None
    assert requested(cache.snapshot()) == [1000, 0]
    assert cache.invalid == {}


def test_malformed_pod_is_left_out_until_it_is_deleted() -> None:
    cache = cache_of(make_node_object("a"), pod())
    (problem,) = cache.replace("Pod", [pod(), pod("q", cpu="1GiB")])
    assert str(problem.key) == "x/q"
    assert requested(cache.snapshot()) == [1000]
    cache.replace("Pod", [pod()])
    assert cache.invalid == {}


def test_malformed_slice_is_left_out_and_reported() -> None:
    cache = cache_of(make_node_object("a"))
    (good,) = [each for each in optional_objects("x") if each["kind"] == "ResourceSlice"]
    bad = {**good, "metadata": {"name": "bad"}, "spec": {**good["spec"], "devices": [{"attributes": 3}]}}
    (problem,) = cache.replace("ResourceSlice", [good, bad])
    assert str(problem.key) == "bad"
    assert problem.message.startswith("spec.devices[0].attributes: Invalid value: 3; must be an object")
    slices = cache.snapshot().devices.slices
    assert slices is not None
    assert [each.name for each in slices.shared] == [good["metadata"]["name"]]


def test_annotations_of_a_namespace_are_those_of_its_last_event() -> None:
    cache = cache_of(namespace("x", a="1"))
    before = cache.snapshot()
    cache.apply("Namespace", "MODIFIED", namespace("x", a="2"))
    assert before.namespace_annotations("x") == {"a": "1"}
    assert cache.snapshot().namespace_annotations("x") == {"a": "2"}


def test_pods_of_one_template_share_equal_values() -> None:
    cache = cache_of(make_node_object("a"), pod("p"), pod("q"))
    first, second = cache.snapshot().nodes[0].pods
    assert first.requests is second.requests
    assert first.namespace is second.namespace


@pytest.mark.parametrize("event", ["DELETED", "MODIFIED"])
def test_a_running_pod_without_its_labels_in_the_view_counts_as_left_out_until_it_is_gone(event: str) -> None:
    cache, many = cache_of(make_node_object("a")), {f"l{number}": "x" for number in range(129)}
    cache.apply("Pod", "ADDED", {**pod(), "metadata": {"name": "p", "namespace": "x", "labels": many}})
    before = cache.snapshot()

    cache.apply("Pod", event, pod())

    assert before.left_out.names == {(POD_LABELS, "x"): {"x/p"}}
    assert cache.snapshot().left_out.names == {}


_names = st.sampled_from(("a", "b", "c"))
_nodes = st.builds(
    make_node_object,
    _names,
    labels=st.fixed_dictionaries({}, optional={"zone": st.sampled_from(("1", "2")), "pool": st.just("p")}),
    taints=st.sampled_from(((), ("k=v:NoSchedule",), ("k=v:NoSchedule", "l:NoExecute"))),
    capacity=st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(("4", "8")), "nvidia.com/gpu": st.just(8)}),
    unschedulable=st.booleans(),
)
_affinity = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
        ]
    }
}


@st.composite
def _pods(draw: st.DrawFn) -> Object:
    made = make_pod(draw(st.sampled_from(("p", "q", "r", "s")))).namespace(draw(st.sampled_from(("x", "y"))))
    made = made.requests(cpu=draw(st.sampled_from(("1", "500m")))).label("app", draw(st.sampled_from(("web", "db"))))
    if draw(st.booleans()):
        made = made.gpu(2)
    if draw(st.booleans()):
        made = made.host_port(draw(st.sampled_from((80, 81))))
    if draw(st.booleans()):
        made = made.affinity(_affinity)
    made = made.status(phase=draw(st.sampled_from(("Running", "Running", "Pending", "Failed"))))
    if draw(st.booleans()):
        made = made.status(startTime=f"2026-01-01T00:00:0{draw(st.integers(0, 2))}Z")
    if draw(st.booleans()):
        made = made.status(nominatedNodeName=draw(st.sampled_from(("a", "b", "c"))))
    content = made.node_name(draw(st.sampled_from(("a", "b", "c", "")))).obj()
    if draw(st.booleans()):
        content["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return content


_spaces = st.builds(namespace, st.sampled_from(("x", "y")), team=st.sampled_from(("1", "2")))
_optional = st.sampled_from([each for variant in ("1", "2") for each in optional_objects("x", variant)])
_objects = st.one_of(_nodes, _pods(), _pods(), _spaces, _optional)
_KINDS = ("Node", "Pod", "Namespace", *OPTIONAL_KINDS)
_steps = st.one_of(
    st.tuples(st.sampled_from(("ADDED", "MODIFIED", "DELETED")), _objects),
    st.just(("LOOK", None)),
    st.tuples(st.just("LIST"), st.lists(_objects, max_size=6)),
)


def _key(content: Object) -> tuple[str, str, str]:
    metadata = content["metadata"]
    return content["kind"], metadata.get("namespace", ""), metadata["name"]


def _follow(cache: ClusterCache, held: dict[tuple[str, str, str], Object], kind: str, given: Any) -> None:
    """Take one step, in the cache and in the model."""
    if kind == "LOOK":
        before, after = cache._snapshot, cache.snapshot()
        if after.rows is before.rows:
            pairs = enumerate(zip(before.nodes, after.nodes, strict=True))
            assert {*after.changed_rows(before)} == {row for row, (known, info) in pairs if info is not known}
    elif kind == "LIST":
        listed: Iterable[Object] = {_key(each): each for each in given}.values()
        for of in _KINDS:
            of_kind = [each for each in listed if each["kind"] == of]
            cache.replace(of, of_kind)
            for key in [key for key in held if key[0] == of]:
                del held[key]
            held.update({_key(each): each for each in of_kind})
    else:
        cache.apply(given["kind"], kind, given)
        if kind == "DELETED":
            held.pop(_key(given), None)
        else:
            held[_key(given)] = given


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(_steps, max_size=25))
def test_any_events_come_to_the_same_as_a_snapshot_made_anew(steps: list[tuple[str, Any]]) -> None:
    cache, held = ClusterCache(), dict[tuple[str, str, str], Object]()
    for kind in _KINDS:
        cache.replace(kind, [])
    for kind, content in steps:
        _follow(cache, held, kind, content)
    assert said(cache.snapshot()) == said(made_anew(held.values()))


def test_all_fields_of_a_snapshot_are_compared() -> None:
    """All but the log, which identifies a state, and what has changed since an earlier one."""
    assert {each.name for each in fields(Snapshot)} == {*SAID, "_log", "_origin", "_rows_since_origin"}


@pytest.mark.parametrize("content", optional_objects("x"), ids=lambda content: content["kind"])
def test_optional_kind_is_known_when_its_list_is_complete(content: Object) -> None:
    kind, cache = content["kind"], cache_of(make_node_object("a"))
    before = cache.snapshot()
    listing = cache.listing(kind)
    listing.add([content])
    assert cache.snapshot() is before
    listing.finish()
    known = cache.snapshot()
    assert said(known) == said(made_anew([make_node_object("a"), content])) != said(before)
    cache.mark_unknown(kind)
    assert said(cache.snapshot()) == said(before)
    assert not_known(cache.snapshot()) == not_known(before)


def not_known(snapshot: Snapshot) -> list[bool]:
    storage = snapshot.storage
    return [each is None for each in (storage.claims, storage.volumes, storage.classes, storage.limits)]


def test_kind_without_an_object_is_known_to_be_empty() -> None:
    cache = ClusterCache()
    cache.replace("PersistentVolumeClaim", [])
    assert cache.snapshot().storage.claims == {}
    assert cache.snapshot().storage.volumes is None


def test_event_without_a_change_of_an_optional_kind_changes_nothing() -> None:
    cache = whole_cache()
    before = cache.snapshot()
    for content in optional_objects("x"):
        status = {**content.get("status", {}), "observedGeneration": 2}
        cache.apply(content["kind"], "MODIFIED", content | {"status": status})
    assert cache.snapshot() is before


@pytest.mark.parametrize("others", [0, 2])
def test_malformed_object_of_a_kind_that_is_not_known_any_more_is_not_reported(others: int) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": 1}}}
    fine = [{"metadata": {"name": f"s{at}", "namespace": "x"}, "spec": {}} for at in range(others)]
    cache = cache_of(make_node_object("a"))
    assert len(cache.replace("Service", [service | {"metadata": {"name": "bad", "namespace": "x"}}, *fine])) == 1
    assert [key.name for _, key in cache.invalid] == ["bad"]

    cache.mark_unknown("Service")

    assert not cache.invalid
    assert cache.snapshot().left_out.count == 0
