"""Cards that are held by claims, quota and nodes, without a pod that uses them."""

from typing import Any

import pytest

from tests.reclaim.reports import names, report
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import CARD, HOUR, ago, card_pod, gpu_node, running
from tests.support.objects.held import NOW_SECONDS as NOW

Object = dict[str, Any]


def claim(*consumers: Object, driver: str = "gpu.nvidia.com") -> Object:
    results = [{"driver": driver, "pool": "n1", "device": f"gpu-{number}", "request": "gpu"} for number in range(2)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "cards", "namespace": "team-a", "creationTimestamp": ago(9 * HOUR)},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": list(consumers)},
    }


def consumer(uid: str, resource: str = "pods") -> Object:
    return {"resource": resource, "name": "train", "uid": uid}


def test_a_claim_whose_pod_is_gone_holds_cards() -> None:
    (row,) = report(gpu_node("n1"), claim(consumer("gone")))

    assert (row.reason, row.cards, row.nodes) == ("unused-claim", {"gpu.nvidia.com": 2}, ("n1",))
    assert (row.since.is_known, row.why) == (False, "reserved for pod train, which has ended or is gone")
    assert [*row.remedy.commands] == ["delete resourceclaim cards -n team-a"]


def test_a_claim_is_on_the_nodes_of_its_devices_that_exist_in_order_of_name() -> None:
    spread = claim(consumer("gone"))
    devices = [("gpu.nvidia.com", pool) for pool in ("n2", "a-pool-of-the-fabric", "n1", "n2")]
    spread["status"]["allocation"]["devices"]["results"] = [
        {"driver": driver, "pool": pool, "device": f"gpu-{number}", "request": "gpu"}
        for number, (driver, pool) in enumerate([*devices, ("dra.example.com", "n0")])
    ]

    (row,) = report(gpu_node("n0"), gpu_node("n1"), gpu_node("n2", down_for=HOUR), spread)

    assert (row.nodes, row.cards, row.is_down) == (("n1", "n2"), {"gpu.nvidia.com": 4}, True)


@pytest.mark.parametrize(
    ("uids", "cards"),
    [(["stuck"], {"gpu.nvidia.com": 2}), (["stuck", "other"], None), ([], None)],
    ids=["its own", "shared", "not reserved"],
)
def test_a_pod_holds_the_devices_of_a_claim_of_its_own(uids: list[str], cards: dict[str, int] | None) -> None:
    pod = make_pod("train").namespace("team-a").uid("stuck").node_name("n1").deletion(ago(HOUR))
    content = pod.status(phase="Running", startTime=ago(5 * HOUR)).obj()
    content["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "cards"}]

    rows = report(gpu_node("n1"), content, claim(*map(consumer, uids)))

    assert [each.cards for each in rows if each.reason == "terminating"] == ([cards] if cards else [])


def test_a_claim_whose_pod_has_ended_holds_cards() -> None:
    pod = make_pod("train").namespace("team-a").uid("over").node_name("n1").status(phase="Succeeded")

    (row,) = report(gpu_node("n1"), pod, claim(consumer("over")))

    assert row.why == "reserved for pod train, which has ended or is gone"


def test_a_claim_that_is_not_reserved_is_unused_since_its_last_change() -> None:
    unreserved = claim()
    unreserved["metadata"]["managedFields"] = [{"manager": "kube-scheduler", "time": ago(3 * HOUR)}]

    (row,) = report(gpu_node("n1"), unreserved)

    assert (row.why, row.since) == ("allocated, and reserved for no pod", (NOW - 3 * HOUR, True, True))


def test_a_claim_may_be_used_by_its_pod_or_by_a_consumer_of_another_kind() -> None:
    pod = make_pod("train").namespace("team-a").uid("lives").node_name("n1").status(phase="Running")

    assert report(gpu_node("n1"), pod, claim(consumer("lives"))) == []
    assert report(gpu_node("n1"), claim(consumer("unknown", resource="machines"))) == []
    assert report(gpu_node("n1"), claim(driver="dra.example.com")) == []


def test_a_claim_with_access_of_an_administrator_holds_no_cards() -> None:
    monitoring = claim(consumer("gone"))
    for each in monitoring["status"]["allocation"]["devices"]["results"]:
        each["adminAccess"] = True

    assert report(gpu_node("n1"), monitoring) == []


def workload(*, ready: str = "") -> Object:
    conditions = [{"type": "Admitted", "status": "True", "lastTransitionTime": ago(4 * HOUR)}]
    if ready:
        conditions.append({"type": "PodsReady", "status": ready, "lastTransitionTime": ago(2 * HOUR)})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-of-train", "controller": True}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "team-a", "ownerReferences": [owner]},
        "status": {
            "conditions": conditions,
            "admission": {"podSetAssignments": [{"name": "main", "resourceUsage": {CARD: "16", "cpu": "4"}}]},
        },
    }


def test_a_workload_without_pods_holds_quota() -> None:
    (row,) = report(gpu_node("n1"), workload(ready="False"))

    assert (row.reason, row.cards, row.nodes) == ("unused-quota", {CARD: 16}, ())
    assert (row.since, row.remedy.text) == ((NOW - 2 * HOUR, False, True), "Job train")
    assert '{"spec":{"active":false}}' in next(iter(row.remedy.commands))


@pytest.mark.parametrize("cluster", ["", "worker-1"])
def test_pods_that_are_ready_or_in_another_cluster_use_their_quota(cluster: str) -> None:
    used = workload(ready="" if cluster else "True")
    used["status"]["clusterName"] = cluster

    assert report(gpu_node("n1"), used) == []


def test_quota_that_waits_for_an_admission_check_is_not_held() -> None:
    reserved = workload()
    reserved["status"]["conditions"][0]["type"] = "QuotaReserved"

    assert report(gpu_node("n1"), reserved) == []


def test_a_claim_can_have_more_consumers_than_are_shown() -> None:
    pod = make_pod("train").namespace("team-a").uid("lives").node_name("n1").status(phase="Running")
    consumers = [consumer(f"gone-{number}") for number in range(100)]

    assert report(gpu_node("n1"), pod, claim(*consumers, consumer("lives"))) == []


@pytest.mark.parametrize("kind", ["Finished", "Evicted"])
def test_a_workload_whose_pods_exist_or_that_is_over_holds_none(kind: str) -> None:
    over = workload()
    over["status"]["conditions"].append({"type": kind, "status": "True"})
    by_name = card_pod("train-0-abc", "n1")
    by_owner = make_pod("x").namespace("team-a").gpu(8).owner("Job", "train", uid="uid-of-train")

    assert [names(report(gpu_node("n1"), workload(), each)) for each in (by_name, by_owner)] == [[], []]
    assert report(gpu_node("n1"), over) == []
    assert not report(gpu_node("n1"), workload())[0].since.is_known


def test_the_quota_of_a_group_of_many_pods_is_used_by_its_last_one() -> None:
    of_group = workload()
    pods = [{"apiVersion": "v1", "kind": "Pod", "name": f"w-{n}", "uid": f"uid-{n}"} for n in range(100)]
    of_group["metadata"]["ownerReferences"] = pods
    last = make_pod("w-99").namespace("team-a").uid("uid-99").gpu(8)

    assert names(report(gpu_node("n1"), of_group, last)) == []


def rejected(number: int, since: int, reason: str = "UnexpectedAdmissionError") -> PodBuilder:
    pod = make_pod(f"rejected-{number}").namespace("team-a").gpu(8).node_name("n1")
    return pod.status(phase="Failed", reason=reason, startTime=ago(since))


def test_a_node_that_rejects_its_pods_holds_its_free_cards() -> None:
    pods = [rejected(number, HOUR - number) for number in range(3)]

    (row,) = report(gpu_node("n1"), card_pod("old", "n1", 2), *pods)

    assert (row.reason, row.cards, row.namespace) == ("rejecting-node", {CARD: 6}, "")
    assert (row.since.seconds, [*row.remedy.commands]) == (NOW - HOUR, ["cordon n1"])
    assert row.why == "UnexpectedAdmissionError: rejected 3 pods, started none"


def test_a_node_that_still_rejects_pods_is_reported_since_the_first_one() -> None:
    pods = [rejected(number, since) for number, since in enumerate((600, 5 * HOUR, 2 * HOUR))]

    (row,) = report(gpu_node("n1"), *pods, card_pod("old", "n1", 2))

    assert (row.since, row.cards) == ((NOW - 5 * HOUR, False, True), {CARD: 6})


@pytest.mark.parametrize(("newest", "is_reported"), [(HOUR, True), (HOUR + 1, False)])
def test_a_node_that_has_rejected_no_pod_for_an_hour_is_not_reported(newest: int, is_reported: bool) -> None:
    pods = [rejected(number, newest + number) for number in range(3)]

    assert bool(report(gpu_node("n1"), *pods)) is is_reported


def test_a_node_that_rejected_few_pods_or_starts_others_is_not_reported() -> None:
    pods = [rejected(number, HOUR - number, "OutOfnvidia.com/gpu") for number in range(3)]
    old = [rejected(number, 5 * HOUR) for number in range(9)]

    assert names(report(gpu_node("n1"), *pods)) == [("rejecting-node", "n1")]
    assert report(gpu_node("n1"), *pods[:2]) == []
    assert report(gpu_node("n1"), *(rejected(number, HOUR - number, "OutOfcpu") for number in range(3))) == []
    assert report(gpu_node("n1"), *old) == []
    assert report(gpu_node("n1"), *pods, card_pod("new", "n1", 2, since=600)) == []
    assert report(gpu_node("n1", down_for=60), *pods) == []
    assert report(gpu_node("n2"), *pods) == []
    assert report(gpu_node("n1"), *pods, card_pod("full", "n1", 8)) == []
    cordoned = gpu_node("n1")
    cordoned["spec"]["unschedulable"] = True
    assert report(cordoned, *pods) == []


@pytest.mark.parametrize(
    ("started", "cards", "is_reported"),
    [
        pytest.param(HOUR + 1, 2, True, id="before the first pod was rejected"),
        pytest.param(HOUR, 2, False, id="with the first"),
        pytest.param(HOUR * 3 // 4, 2, False, id="between the first and the last"),
        pytest.param(HOUR // 2, 2, False, id="with the last"),
        pytest.param(60, 2, False, id="after the last"),
        pytest.param(60, 0, True, id="without cards"),
    ],
)
def test_a_node_that_starts_a_pod_with_cards_after_it_rejects_the_first_is_not_reported(
    started: int, cards: int, is_reported: bool
) -> None:
    pods = [rejected(number, since) for number, since in enumerate((HOUR // 2, HOUR, HOUR * 2 // 3))]
    plain = running(make_pod("started").namespace("team-a").node_name("n1"), started)
    pod = card_pod("started", "n1", cards, since=started) if cards else plain

    assert bool(report(gpu_node("n1"), *pods, pod)) is is_reported
