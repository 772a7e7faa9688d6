"""An update of an object replaces its running pods, or starts beside them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.objects.advised import (
    DEPLOYMENT,
    ONE_SCHEDULER,
    RAY,
    admitted,
    gpu_node,
    running,
    template,
    view,
    waiting,
    warnings_of,
)
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import workload
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import APP, Object
from webhook.kube.deadline import never
from webhook.objects.own_pods import keeps_all_pods, without_own_pods, without_own_waiting, without_pod


def test_pods_of_an_object_do_not_wait_before_the_pods_of_its_update() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(5), 4)
    own = make_pod("own").gpu(8).label("app", APP["app"])

    beside_others = warnings_of(admitted(new, waiting(make_pod("waits").gpu(8)), old=old))
    beside_its_own = warnings_of(admitted(new, waiting(own), old=old))

    assert "1 pod that waits before it needs the room" in beside_others[0]
    assert "2 of 4 replicas fit now" in beside_its_own[0]
    assert "that waits before it" not in beside_its_own[0]


FULL = view(gpu_node("n1", running(1), running(2)), gpu_node("n2", running(3), running(4)))


def test_an_update_replaces_the_pods_of_the_object() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(4, bin_packing="false"), 4)

    assert warnings_of(admitted(new, FULL, old=old)) == ()
    assert warnings_of(admitted(new, FULL))[0].startswith(
        "placement check: Waiting: 0 of 4 replicas fit now; the first"
    )


@pytest.mark.parametrize(("namespace", "name", "left"), [("team-a", "web", 0), ("team-a", "db", 1), ("lab", "web", 1)])
def test_an_update_replaces_the_assignment_of_the_object_by_kueue(namespace: str, name: str, left: int) -> None:
    assigned = workload("w", make_pod("").obj(), ["rack"], (["r1"], 1), namespace=namespace)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": "u", "controller": True}
    assigned["metadata"]["ownerReferences"] = [owner]
    content, kind = DEPLOYMENT.object(template()), policy_with().kinds["apps", "Deployment"]

    found = without_own_pods(view([assigned]).snapshot, "team-a", content, kind, never)

    assert len(found.snapshot.kueue.workloads or {}) == left


JOB = {"group": "example.com", "kind": "Job", "resource": "jobs", "templates": [{"path": "spec.template"}]}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (("apps", "Deployment"), {"metadata": {"name": "web"}, "spec": {"selector": {}}}),
        (("apps", "Deployment"), {"metadata": {"name": "web"}, "spec": {"selector": 5}}),
        (("ray.io", "RayCluster"), {"metadata": {}, "spec": {}}),
        (("example.com", "Job"), {"metadata": {"name": "web"}, "spec": {}}),
    ],
    ids=["an empty selector", "no selector", "no name", "a kind whose pods have no labels of their own"],
)
def test_pods_stay_if_those_of_the_object_are_not_known(kind: tuple[str, str], fields: Object) -> None:
    cluster, policy = view(gpu_node("n1", running(1), running(2))), policy_with(workloadKinds=[JOB])

    found = without_own_pods(cluster.snapshot, "team-a", fields, policy.kinds[kind], never)

    assert (found.replaced, found.snapshot.load.pods.tolist()) == (0, [2])
    assumed = waiting(make_pod("waits").gpu(8).label("app", APP["app"])).assumed
    assert assumed is not None
    assert without_own_waiting(assumed, "team-a", fields, policy.kinds[kind]).by_key.keys() == assumed.by_key.keys()


@pytest.mark.parametrize(
    ("namespace", "name", "left"),
    [("team-a", "web-2", [1, 2]), ("team-b", "web-2", [2, 1]), ("team-a", "web-9", [2, 2])],
)
def test_a_pod_that_is_updated_is_the_one_of_its_name_and_namespace(namespace: str, name: str, left: list[int]) -> None:
    nodes = gpu_node("n1", running(1), running(2)), gpu_node("n2", running(2).namespace("team-b"), running(3))

    found = without_pod(view(*nodes).snapshot, namespace, name)

    assert (found.replaced, found.snapshot.load.pods.tolist()) == (4 - sum(left), left)


def test_the_running_pods_that_count_as_gone_are_counted() -> None:
    old, new = DEPLOYMENT.object(template(4), 1), DEPLOYMENT.object(template(16), 1)

    warnings = warnings_of(admitted(new, view(gpu_node("n1", running(1))), old=old))

    assert warnings[-1] == "placement check: the 1 running pod of the object counts as gone, as after a rolling update"


def test_pods_with_the_labels_of_the_object_in_another_namespace_stay() -> None:
    foreign = running(2).namespace("team-b")
    cluster = view(gpu_node("n1", running(1), foreign))
    old, new = DEPLOYMENT.object(template(4), 2), DEPLOYMENT.object(template(4, bin_packing="false"), 2)

    assert "1 of 2 replicas fits now" in warnings_of(admitted(new, cluster, old=old))[0]


def test_an_update_that_does_not_fit_says_what_is_assumed() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(8), 4)

    warnings = warnings_of(admitted(new, FULL, old=old))

    assert warnings[0].startswith("placement check: Waiting: 2 of 4 replicas fit now; the next: 0/2 nodes")
    assert warnings[-1] == "placement check: the 4 running pods of the object count as gone, as after a rolling update"


def rolling(content: Object, **fields: Any) -> Object:
    return content | {"spec": content["spec"] | {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}}


AVAILABLE = {"maxUnavailable": 0, "maxSurge": 1}
KEEPING = [
    pytest.param(3, {"maxUnavailable": "25%", "maxSurge": "25%"}, id="the default for up to three replicas"),
    pytest.param(4, AVAILABLE, id="none may be unavailable"),
    pytest.param(3, {}, id="fields that are not set"),
]
REPLACING = [
    pytest.param(4, {"maxUnavailable": "25%", "maxSurge": "25%"}, id="the default for four replicas"),
    pytest.param(3, {"maxUnavailable": 1, "maxSurge": 0}, id="one may be unavailable"),
    pytest.param(3, {"maxUnavailable": "1٠%", "maxSurge": "50%"}, id="a number that the API server rejects"),
    pytest.param(3, {"maxUnavailable": "0%", "maxSurge": "0%"}, id="neither: one is unavailable"),
    pytest.param(3, {"maxUnavailable": "x%", "maxSurge": "50%"}, id="no number"),
    pytest.param(3, {"maxUnavailable": "%", "maxSurge": "50%"}, id="a percentage without a number"),
]
CANNOT_START = (
    "placement check: Waiting: the rolling update cannot start beside the running pods: "
    "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
)
KEEPS_ALL = (
    "placement check: maxUnavailable is 0: a new pod starts before an old one ends; "
    "with spec.strategy.rollingUpdate.maxUnavailable: 1 an old one ends first"
)


@pytest.mark.parametrize(
    ("strategy", "replicas", "keeps"),
    [
        (None, 3, True),
        (None, 4, False),
        ({}, 3, True),
        ({"type": "RollingUpdate"}, 3, True),
        ({"type": "RollingUpdate", "rollingUpdate": None}, 4, False),
        ({"type": "Recreate"}, 3, False),
        ({"rollingUpdate": {"maxUnavailable": 0}}, None, True),
        ({"rollingUpdate": {"maxUnavailable": "99%"}}, None, True),
        ({"rollingUpdate": {"maxUnavailable": "100%"}}, None, False),
        ({"rollingUpdate": {"maxUnavailable": "33%"}}, 3, True),
        ({"rollingUpdate": {"maxUnavailable": "34%"}}, 3, False),
        ({"rollingUpdate": {"maxUnavailable": "9%"}}, 11, True),
        ({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "1%"}}, 1, True),
        ({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}, 1, False),
        ({"rollingUpdate": {"maxUnavailable": "0%", "maxSurge": 1}}, 9, True),
    ],
)
def test_a_deployment_keeps_all_pods_if_no_whole_pod_may_be_unavailable(
    strategy: Object | None, replicas: int | None, keeps: bool
) -> None:
    """The numbers of unavailable pods are rounded down and default to 25 %, those of further pods rounded up."""
    spec = {"strategy": strategy, "replicas": replicas}
    content = {"spec": {key: value for key, value in spec.items() if value is not None}}

    for (group, kind), found in policy_with().kinds.items():
        assert keeps_all_pods(content, found) is (keeps and (group, kind) == ("apps", "Deployment"))


@pytest.mark.parametrize(("replicas", "fields"), KEEPING)
def test_a_rolling_update_that_keeps_all_pods_needs_room_beside_them(replicas: int, fields: Object) -> None:
    old, new = DEPLOYMENT.object(template(4), replicas), DEPLOYMENT.object(template(4, bin_packing="false"), replicas)

    assert warnings_of(admitted(rolling(new, **fields), FULL, old=old)) == (CANNOT_START, KEEPS_ALL)
    half_full = view(gpu_node("n1", running(1), running(2)), gpu_node("n2", running(3)))
    assert warnings_of(admitted(rolling(new, **fields), half_full, old=old)) == ()


def test_a_rolling_update_that_keeps_all_pods_needs_room_beside_those_that_wait() -> None:
    old, new = DEPLOYMENT.object(template(8), 2), DEPLOYMENT.object(template(8, bin_packing="false"), 2)
    own = [make_pod(f"own-{number}").gpu(4).label("app", APP["app"]) for number in range(2)]
    n2_full = view(gpu_node("n1"), gpu_node("n2", running(1), running(2)))
    assumed = waiting(*own).assumed
    assert assumed is not None
    beside = replace(n2_full, assumed=assumed.on(n2_full.snapshot))

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), beside, old=old))

    assert first == f"{CANNOT_START} It would fit, but 2 pods that wait before it need the room."
    assert last == KEEPS_ALL


def test_a_rolling_update_of_pods_that_all_wait_needs_room_beside_them() -> None:
    old, new = DEPLOYMENT.object(template(8), 1), DEPLOYMENT.object(template(8, bin_packing="false"), 1)
    n2_full = view(gpu_node("n1"), gpu_node("n2", make_pod("other").namespace("team-b").gpu(8)))
    assumed = waiting(make_pod("own").gpu(4).label("app", APP["app"])).assumed
    assert assumed is not None
    beside = replace(n2_full, assumed=assumed.on(n2_full.snapshot))

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), beside, old=old))

    assert first.startswith(CANNOT_START)
    assert last == KEEPS_ALL


@pytest.mark.parametrize(("replicas", "fields"), REPLACING)
def test_a_rolling_update_that_may_remove_a_pod_first_can_start(replicas: int, fields: Object) -> None:
    old, new = DEPLOYMENT.object(template(4), replicas), DEPLOYMENT.object(template(4, bin_packing="false"), replicas)

    assert warnings_of(admitted(rolling(new, **fields), FULL, old=old)) == ()


def test_an_update_that_creates_the_pods_again_can_start() -> None:
    old, new = DEPLOYMENT.object(template(4), 1), DEPLOYMENT.object(template(4, bin_packing="false"), 1)
    recreated = new | {"spec": new["spec"] | {"strategy": {"type": "Recreate"}}}

    assert warnings_of(admitted(recreated, FULL, old=old)) == ()


def test_an_update_that_never_fits_names_both_reasons() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(8), 4)

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), FULL, old=old))

    assert first.startswith("placement check: Waiting: 2 of 4 replicas fit now; the next: ")
    assert last == KEEPS_ALL


def test_pods_of_an_operator_are_found_by_the_label_with_the_name_of_the_object() -> None:
    head = make_pod("head").namespace("team-a").gpu(8).label("ray.io/cluster", "web")
    others = make_pod("other").namespace("team-a").gpu(8).label("ray.io/cluster", "other")
    new = RAY.object(template(8))

    old = RAY.object(template(4))
    assert warnings_of(admitted(new, view(gpu_node("n1", head)), ONE_SCHEDULER, old=old)) == ()
    assert (
        "Insufficient nvidia.com/gpu"
        in warnings_of(admitted(new, view(gpu_node("n1", others)), ONE_SCHEDULER, old=old))[0]
    )


def test_an_update_whose_pods_fit_on_no_node_is_not_about_the_running_pods() -> None:
    old, new = DEPLOYMENT.object(template(4), 3), DEPLOYMENT.object(template(64), 3)

    warnings = warnings_of(admitted(rolling(new, **AVAILABLE), FULL, old=old))

    assert warnings[0].startswith("placement check: Infeasible: 0 of 3 replicas fit now")
    assert KEEPS_ALL not in warnings
