"""Warnings about the queue and the group of a pod, which batch schedulers report late, elsewhere or not at all."""

import pytest

from tests.placement.reasons.batch_pods import Object, warnings_of
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
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import made_anew
from tests.support.work import calls_of
from webhook.backends.backend import BatchNames
from webhook.backends.registry import backend_of, batch_names_of
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.placement.reasons.batch_warnings import queue_warnings
from webhook.placement.scorer import PodSignature

GPU = "nvidia.com/gpu"
SILENTLY = "the pod waits without a condition or an Event until it does"
_VOLCANO = make_pod().namespace("default").scheduler("volcano").requests(cpu="1").gpu(2)
_KAI = make_pod().namespace("default").scheduler("kai-scheduler").requests(cpu="1").gpu(2)
_KUEUE = make_pod().namespace("default").label("kueue.x-k8s.io/queue-name", "q").requests(cpu="1").gpu(2)


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
        pytest.param(
            [local_queue("q", stop="Hold"), cluster_queue("cards", {"spot": _CARDS}, stop="Hold")],
            [
                "Kueue: LocalQueue q is stopped: it admits no pods",
                "Kueue: ClusterQueue cards is stopped: it admits no pods",
            ],
            id="both queues are stopped",
        ),
        pytest.param(
            [
                local_queue("q"),
                cluster_queue("cards", {"large": {GPU: "4"}, "small": {GPU: "1"}}),
                resource_flavor("large", pool="other"),
                resource_flavor("small", pool="training"),
            ],
            [
                f"Kueue: the quota of ClusterQueue cards can never hold this pod: {GPU} 2 of 1",
                "Kueue: no node has the labels of flavor small (pool=training): its pods find no node",
            ],
            id="enough in a flavor of other nodes only",
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
