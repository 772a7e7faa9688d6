"""Warnings about the queue and the group of a pod, which batch schedulers report late, elsewhere or not at all."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.admission import policy_with
from tests.support.objects.batch_objects import (
    cluster_queue,
    kai_group,
    kai_queue,
    local_queue,
    pod_group,
    resource_flavor,
    volcano_group,
    volcano_queue,
)
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.views import made_anew
from tests.support.work import calls_of
from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest
from webhook.backends.registry import backend_of, batch_names_of
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.placement.reasons.batch_warnings import queue_warnings
from webhook.placement.reasons.gang_request import GangDemand, grouped
from webhook.placement.scorer import PodSignature

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
SILENTLY = "the pod waits without a condition or an Event until it does"

_VOLCANO = make_pod().namespace("default").scheduler("volcano").requests(cpu="1").gpu(2)
_KAI = make_pod().namespace("default").scheduler("kai-scheduler").requests(cpu="1").gpu(2)
_KUEUE = make_pod().namespace("default").label("kueue.x-k8s.io/queue-name", "q").requests(cpu="1").gpu(2)


def warnings_of(pod: PodBuilder, objects: Iterable[Object], gang: GangRequest | None = None) -> list[str]:
    settings = {each: {"backend": each} for each in ("coscheduling", "native")}
    content, spec = pod.obj(), policy_with(schedulers=settings).spec
    names = batch_names_of(content, backend_of(spec, content["spec"].get("schedulerName", "default-scheduler")))
    info, snapshot = PodSignature.of(content).info, made_anew([make_node_object("a"), *objects])
    found = gang and grouped(gang, names, "default", snapshot)
    return [*queue_warnings(names, info, snapshot, GangDemand.of_pod(found, info) if found else None)]


def no_group(prefix: str) -> str:
    return f"{prefix}: PodGroup g does not exist in default: {SILENTLY}"


@pytest.mark.parametrize(
    ("queue", "group", "objects", "warnings"),
    [
        pytest.param("", "", [], [], id="nothing is known"),
        pytest.param("", "", [volcano_queue()], [], id="the default queue"),
        pytest.param("a", "", [volcano_queue()], [f"Volcano: queue a does not exist: {SILENTLY}"], id="no queue"),
        pytest.param("a", "", [volcano_queue("a", state="")], [], id="a queue that the controller has not seen"),
        pytest.param(
            "a",
            "",
            [volcano_queue("a", state="Closing")],
            ["Volcano: queue a is Closing: it starts no pods"],
            id="closed",
        ),
        pytest.param("", "g", [volcano_group("g"), volcano_queue()], [], id="a group"),
        pytest.param("", "g", [volcano_group("other"), volcano_queue()], [no_group("Volcano")], id="no group"),
        pytest.param("", "g", [volcano_group("g", namespace="x")], [no_group("Volcano")], id="another namespace"),
        pytest.param("", "g", [volcano_queue()], [], id="groups are not known"),
        pytest.param(
            "",
            "g",
            [volcano_group("g", phase="Pending")],
            ["Volcano: PodGroup g is Pending: no pod of it is scheduled before it is enqueued"],
            id="not enqueued",
        ),
        pytest.param(
            "default",
            "g",
            [volcano_group("g", queue="b"), volcano_queue()],
            [f"Volcano: queue b does not exist: {SILENTLY}"],
            id="the queue of the group counts",
        ),
        pytest.param(
            "a",
            "g",
            [volcano_group("g", queue=""), volcano_queue("a")],
            [f"Volcano: queue default does not exist: {SILENTLY}"],
            id="a group without a queue is in the default one",
        ),
        pytest.param(
            "a",
            "",
            [volcano_queue("a", capability={GPU: "4", "cpu": "8"}, allocated={GPU: "3"})],
            [f"Volcano: with this pod, queue a exceeds its capability: {GPU} 3 + 2 of 4"],
            id="over its capability",
        ),
        pytest.param("a", "", [volcano_queue("a", capability={GPU: "4"}, allocated={GPU: "2"})], [], id="exactly full"),
        pytest.param("a", "", [volcano_queue("a", capability={"memory": "0"})], [], id="not requested"),
        pytest.param(
            "a",
            "",
            [volcano_queue("a", capability={"cpu": "500m"})],
            ["Volcano: with this pod, queue a exceeds its capability: cpu 1 of 500m"],
            id="never",
        ),
    ],
)
def test_volcano(queue: str, group: str, objects: list[Object], warnings: list[str]) -> None:
    pod = _VOLCANO
    pod = pod.annotate("scheduling.volcano.sh/queue-name", queue) if queue else pod
    pod = pod.annotate("scheduling.k8s.io/group-name", group) if group else pod
    assert warnings_of(pod, objects) == warnings


@pytest.mark.parametrize(
    ("labels", "group", "objects", "warnings"),
    [
        pytest.param({}, "", [], [], id="nothing is known"),
        pytest.param({}, "", [kai_queue("a")], ["KAI: Queue 'default-queue' does not exist."], id="no default queue"),
        pytest.param({"kai.scheduler/queue": "a"}, "", [kai_queue("a")], [], id="a queue"),
        pytest.param({"project": "a"}, "", [kai_queue("a")], [], id="a project"),
        pytest.param(
            {"kai.scheduler/queue": "b", "project": "a"},
            "",
            [kai_queue("a")],
            ["KAI: Queue 'b' does not exist."],
            id="the label of the queue outranks the project",
        ),
        pytest.param(
            {"kai.scheduler/queue": "p"},
            "",
            [kai_queue("p"), kai_queue("a", parent="p")],
            ["KAI: queue p has child queues: name one of them, pods belong into a leaf queue"],
            id="no leaf",
        ),
        pytest.param(
            {"kai.scheduler/queue": "a"},
            "",
            [kai_queue("a", limits={"gpu": 2.5}, allocated={GPU: "1"})],
            [f"KAI: OverLimit: with this pod, queue a exceeds its limit: {GPU} 1 + 2 of 2.5"],
            id="over its limit",
        ),
        pytest.param(
            {"kai.scheduler/queue": "a"},
            "",
            [kai_queue("p", limits={"cpu": 500}), kai_queue("a", parent="p")],
            ["KAI: OverLimit: with this pod, queue p exceeds its limit: cpu 1 of 500m"],
            id="over the limit of its parent",
        ),
        pytest.param({}, "g", [kai_group("other")], [no_group("KAI")], id="no group"),
        pytest.param(
            {},
            "g",
            [kai_group("g"), kai_queue("a")],
            ["KAI: Queue 'team' does not exist."],
            id="the queue of the group",
        ),
    ],
)
def test_kai(labels: dict[str, str], group: str, objects: list[Object], warnings: list[str]) -> None:
    pod = _KAI
    for key, value in labels.items():
        pod = pod.label(key, value)
    pod = pod.annotate("pod-group-name", group) if group else pod
    assert warnings_of(pod, objects) == warnings


def test_queue_of_kai_that_is_its_own_ancestor_ends() -> None:
    pod = _KAI.label("kai.scheduler/queue", "a")
    assert len(warnings_of(pod, [kai_queue("a", parent="b"), kai_queue("b", parent="a")])) == 1


def test_pod_with_an_owner_may_have_the_kai_queue_of_the_owner() -> None:
    assert warnings_of(_KAI.owner("ReplicaSet", "web"), [kai_queue("a")]) == []


_CARDS = {GPU: "4", "cpu": "8"}
_NO_FLAVOR = (
    "Kueue: no flavor of ClusterQueue cards (spot, demand) has the node labels that the pod requires: it stays gated"
)


@pytest.mark.parametrize(
    ("objects", "warnings"),
    [
        pytest.param([], [], id="nothing is known"),
        pytest.param(
            [local_queue("other")],
            ["Kueue: LocalQueue q does not exist in default: the pod stays gated until it does"],
            id="no queue",
        ),
        pytest.param(
            [local_queue("q", stop="Hold")], ["Kueue: LocalQueue q is stopped: it admits no pods"], id="stopped"
        ),
        pytest.param(
            [local_queue("q"), cluster_queue("other", {})],
            ["Kueue: ClusterQueue cards does not exist: the pod stays gated until it does"],
            id="no ClusterQueue",
        ),
        pytest.param(
            [local_queue("q"), cluster_queue("cards", {"spot": _CARDS}, stop="HoldAndDrain")],
            ["Kueue: ClusterQueue cards is stopped: it admits no pods"],
            id="stopped ClusterQueue",
        ),
        pytest.param([local_queue("q"), cluster_queue("cards", {"spot": _CARDS})], [], id="quota"),
        pytest.param(
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "1"}})],
            [f"Kueue: the quota of ClusterQueue cards can never hold this pod: {GPU} 2 of 1"],
            id="too small a quota",
        ),
        pytest.param(
            [local_queue("q"), cluster_queue("cards", {"small": {GPU: "1"}, "large": {GPU: "2"}})],
            [],
            id="one of two flavors",
        ),
        pytest.param(
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "1"}}, cohort="all")], [], id="can borrow"
        ),
        pytest.param(
            [
                local_queue("q"),
                cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}),
                resource_flavor("spot", pool="spot"),
                resource_flavor("demand", pool="demand"),
            ],
            [_NO_FLAVOR],
            id="labels of the flavors",
        ),
    ],
)
def test_kueue(objects: list[Object], warnings: list[str]) -> None:
    assert warnings_of(_KUEUE.node_selector("pool", "training").node_selector("zone", "a"), objects) == warnings


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        pytest.param([[expression("pool", "In", "spot")]], True, id="one flavor"),
        pytest.param([[expression("pool", "NotIn", "spot", "demand")]], False, id="no flavor"),
        pytest.param([[expression("pool", "In", "x")], [expression("pool", "Exists")]], True, id="one of two terms"),
        pytest.param(
            [[expression("pool", "In", "x")], [expression("zone", "In", "a")]], True, id="a term about others"
        ),
        pytest.param([[expression("pool", "In", "spot"), expression("zone", "In", "a")]], True, id="other keys"),
    ],
)
def test_required_node_affinity_selects_flavors_by_their_own_keys(terms: list[list[Object]], fits: bool) -> None:
    pod = _KUEUE.require_node(*({"matchExpressions": term} for term in terms))
    objects = [
        local_queue("q"),
        cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}),
        resource_flavor("spot", pool="spot"),
        resource_flavor("demand", pool="demand"),
    ]
    nodes = [make_node_object(each, labels={"pool": each}) for each in ("spot", "demand")]
    assert (warnings_of(pod, [*nodes, *objects]) == []) is fits


@pytest.mark.parametrize(
    ("selected", "nodes", "found"),
    [
        pytest.param("", ("spot", "demand"), [], id="all have nodes"),
        pytest.param("", ("spot",), ["demand"], id="one has none"),
        pytest.param("spot", ("spot",), [], id="one that the pod cannot get"),
    ],
)
def test_flavor_whose_labels_no_node_has(selected: str, nodes: tuple[str, ...], found: list[str]) -> None:
    pod = _KUEUE.node_selector("pool", selected) if selected else _KUEUE
    objects = [
        local_queue("q"),
        cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}),
        *(resource_flavor(each, pool=each) for each in ("spot", "demand")),
        *(make_node_object(each, labels={"pool": each}) for each in nodes),
    ]

    assert warnings_of(pod, objects) == [
        f"Kueue: no node has the labels of flavor {each} (pool={each}): its pods find no node" for each in found
    ]


@pytest.mark.parametrize(("topologies", "looks"), [(("rack", "rack"), True), (("rack", ""), False), (("", ""), False)])
def test_kueue_looks_at_nodes_if_all_flavors_of_the_queue_have_a_topology(
    topologies: tuple[str, str], looks: bool
) -> None:
    flavors = [resource_flavor(name) for name in ("spot", "demand")]
    for flavor, topology in zip(flavors, topologies, strict=True):
        flavor["spec"]["topologyName"] = topology
    snapshot = made_anew([local_queue("q"), cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}), *flavors])
    names = [BatchNames("kueue", "q", "", has_owner=False, starts_whole=True)]

    found = grouped(GangRequest("train", 4, "s", starts_whole=False), names, "default", snapshot)

    assert found is not None
    assert (found.least == 4) is looks


def test_kueue_that_is_not_installed_is_named() -> None:
    names = (BatchNames("kueue", "q", "", has_owner=False),)
    info = PodSignature.of(_KUEUE.obj()).info

    def warnings(*groups: str) -> list[str]:
        evidence = SchedulerEvidence(frozenset(groups), "")
        return [*queue_warnings(names, info, _with(evidence))]

    assert warnings("kueue.x-k8s.io") == []
    assert warnings("apps") == [
        "Kueue: no sign that it runs: no API group kueue.x-k8s.io; the pod is scheduled without its queue"
    ]


def _with(evidence: SchedulerEvidence) -> Snapshot:
    return Snapshot.of((), scheduler_evidence=evidence)


def test_pod_without_a_batch_scheduler_names_nothing() -> None:
    content = make_pod().annotate("scheduling.k8s.io/group-name", "g").label("kai.scheduler/queue", "q").obj()
    assert batch_names_of(content, backend_of(policy_with().spec, "default-scheduler")) == ()


@pytest.mark.parametrize("controls", [True, False])
def test_kai_knows_the_gang_of_a_job_that_controls_the_pod(controls: bool) -> None:
    content = _KAI.owner("PyTorchJob", "train", api_version="kubeflow.org/v1").obj()
    content["metadata"]["ownerReferences"][0]["controller"] = controls
    (names,) = batch_names_of(content, backend_of(policy_with().spec, "kai-scheduler"))
    assert names.starts_whole is controls


def test_work_is_bounded_whatever_the_pod_requests_and_selects() -> None:
    objects = [
        local_queue("q"),
        cluster_queue("cards", {f"f{number}": {GPU: "4"} for number in range(60)}),
        *(resource_flavor(f"f{number}", pool=f"p{number}") for number in range(60)),
    ]
    terms = [{"matchExpressions": [expression("pool", "In", "x")]} for _ in range(2000)]
    pod = _KUEUE.require_node(*terms).requests(**{f"example.com/r{number}": "1" for number in range(2000)}).obj()
    info, snapshot = PodSignature.of(pod).info, made_anew(objects)
    names = (BatchNames("kueue", "q", "", has_owner=False),)
    assert calls_of(lambda: [*queue_warnings(names, info, snapshot)]) < 20_000


_IN_GROUPS = {
    "coscheduling": (make_pod().label("scheduling.x-k8s.io/pod-group", "g"), "scheduling.x-k8s.io"),
    "native": (make_pod().spec(schedulingGroup={"podGroupName": "g"}), "scheduling.k8s.io"),
}
_GROUP_MISSING = {
    "coscheduling": "Coscheduling: PodGroup g does not exist in default: no pod of it is bound",
    "native": no_group("kube-scheduler"),
}


@pytest.mark.parametrize("backend", _IN_GROUPS)
def test_missing_group_of_kube_scheduler(backend: str) -> None:
    pod, api_group = _IN_GROUPS[backend]
    pod = pod.namespace("default").scheduler(backend)
    other_group = next(group for each, (_, group) in _IN_GROUPS.items() if each != backend)

    assert warnings_of(pod, []) == []
    assert warnings_of(pod, [pod_group("g", group=api_group)]) == []
    assert warnings_of(pod, [pod_group("other", group=api_group)]) == [_GROUP_MISSING[backend]]
    assert warnings_of(pod, [pod_group("g", group=api_group, namespace="x")]) == [_GROUP_MISSING[backend]]
    assert warnings_of(pod, [pod_group("other", group=other_group)]) == []
    assert warnings_of(pod.scheduler("default-scheduler"), [pod_group("other", group=api_group)]) == []
    assert warnings_of(make_pod().scheduler(backend), [pod_group("other", group=api_group)]) == []


_GANG = make_pod().namespace("default").annotate("maip.mxsf.io/gang", "train").gpu(2)
_OF_VOLCANO = _GANG.scheduler("volcano").annotate("scheduling.k8s.io/group-name", "g")
_OF_KAI = _GANG.scheduler("kai-scheduler").annotate("pod-group-name", "g")
_OF_KUEUE = (
    _GANG.label("kueue.x-k8s.io/queue-name", "q")
    .label("kueue.x-k8s.io/pod-group-name", "train")
    .annotate("kueue.x-k8s.io/pod-group-total-count", "4")
)
_VOLCANO_EXCESS = "Volcano: with the 4 pods of gang train, queue default exceeds its capability"


@pytest.mark.parametrize(
    ("pod", "objects", "warnings"),
    [
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "8"})],
            [],
            id="Volcano, room for all",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "7"})],
            [f"{_VOLCANO_EXCESS}: {GPU} 8 of 7"],
            id="Volcano, too small",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "9"}, allocated={GPU: "2"})],
            [f"{_VOLCANO_EXCESS}: {GPU} 2 + 8 of 9"],
            id="Volcano, others use it",
        ),
        pytest.param(
            _OF_VOLCANO,
            [
                volcano_group("g", members=4),
                volcano_queue(capability={GPU: "9"}, allocated={GPU: "2"}),
                _OF_VOLCANO.node_name("a").obj(),
            ],
            [],
            id="Volcano, members use it",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=2), volcano_queue(capability={GPU: "4"})],
            [],
            id="Volcano, room for as many as start",
        ),
        pytest.param(
            _OF_KAI,
            [kai_group("g", members=4), kai_queue("team", limits={"gpu": 4})],
            [f"KAI: OverLimit: with the 4 pods of gang train, queue team exceeds its limit: {GPU} 8 of 4"],
            id="KAI",
        ),
        pytest.param(
            _OF_KUEUE,
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "6"}})],
            [f"Kueue: the quota of ClusterQueue cards can never hold the 4 pods of gang train: {GPU} 8 of 6"],
            id="Kueue",
        ),
        pytest.param(
            _OF_KUEUE,
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "6"}}, cohort="all", borrowing={GPU: "2"})],
            [],
            id="Kueue, with what can be borrowed",
        ),
        pytest.param(
            _GANG.scheduler("volcano"), [volcano_queue(capability={GPU: "2"})], [], id="Volcano does not know the gang"
        ),
    ],
)
def test_limit_of_a_queue_is_for_the_pods_that_start_together(
    pod: PodBuilder, objects: list[Object], warnings: list[str]
) -> None:
    assert warnings_of(pod, objects, GangRequest("train", 4, "s", starts_whole=True)) == warnings


@pytest.mark.parametrize(
    ("pod", "group", "holder"),
    [
        pytest.param(_OF_VOLCANO, volcano_group("g", members=6), "Volcano", id="volcano"),
        pytest.param(_OF_KAI, kai_group("g", members=6), "KAI", id="kai"),
        pytest.param(
            _GANG.scheduler("coscheduling").label("scheduling.x-k8s.io/pod-group", "g"),
            pod_group("g", group="scheduling.x-k8s.io", members=6),
            "Coscheduling",
            id="coscheduling",
        ),
        pytest.param(
            _GANG.scheduler("native").spec(schedulingGroup={"podGroupName": "g"}),
            pod_group("g", group="scheduling.k8s.io", members=6),
            "kube-scheduler",
            id="native",
        ),
    ],
)
def test_group_that_needs_more_pods_than_the_gang_has_never_starts(pod: PodBuilder, group: Object, holder: str) -> None:
    found = warnings_of(pod, [group], GangRequest("train", 4, "s", starts_whole=True))

    assert found == [f"{holder}: PodGroup g needs 6 pods, and the gang has 4: it never starts"]
