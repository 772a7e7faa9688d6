"""Gangs that hold cards and wait for the rest of their pods."""

from dataclasses import replace

import pytest

from placement_reclaim.report import held_rows
from tests.reclaim.reports import names, objects_of, report
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import pod_group, volcano_group
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import CARD, GANG, GANG_SIZE, HOUR, ago, gang_pod, gpu_node, running, waiting
from tests.support.objects.held import NOW_SECONDS as NOW
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence

NODES = [gpu_node(f"n{number}") for number in range(8)]
THREE = [gang_pod(number, f"n{number}", since=HOUR) for number in range(3)]
WAITING = [gang_pod(number, "", since=2 * HOUR) for number in range(3, 8)]


def test_a_gang_that_runs_in_part_is_one_row_since_its_last_pod_was_bound() -> None:
    earlier = gang_pod(0, "n0", since=3 * HOUR)

    (row,) = report(*NODES, earlier, *THREE[1:], *WAITING)

    assert (row.reason, row.namespace, row.name, row.cards) == ("partial-gang", "team-c", "bert", {CARD: 24})
    assert (row.nodes, row.since) == (("n0", "n1", "n2"), (NOW - HOUR, False, True))
    assert row.why == "3 of 8 pods of gang bert run, 5 wait"
    assert (row.remedy.text, row.returns, len(row.pods)) == ("delete Job bert", True, 3)


def test_a_gang_runs_in_part_since_its_pods_were_bound_whenever_their_kubelets_took_them() -> None:
    clocks = [THREE[0].status(startTime=ago(2 * HOUR)), THREE[1].status(startTime=ago(60))]
    unbound = THREE[2].status(conditions=[])

    (row,) = report(*NODES, *clocks, THREE[2], *WAITING)
    (by_start,) = report(*NODES, unbound, *WAITING)

    assert (row.since.seconds, by_start.since.seconds) == (NOW - HOUR, NOW - HOUR)


def test_a_gang_that_has_lost_a_pod_is_broken_since_the_new_pod_was_made() -> None:
    seven = [gang_pod(number, f"n{number}", since=9 * HOUR) for number in range(7)]

    (row,) = report(*NODES, *seven, gang_pod(7, "", since=HOUR))

    assert (row.why, row.since) == ("7 of 8 pods of gang bert run, 1 wait", (NOW - HOUR, True, True))


def test_a_gang_that_has_lost_a_pod_without_a_trace_has_no_begin() -> None:
    (row,) = report(*NODES, *THREE)

    assert (row.why, row.since.is_known) == ("3 of 8 pods of gang bert run", False)


@pytest.mark.parametrize("lost", [range(3, 8), range(3, 7)], ids=["all others", "all others but one that waits"])
def test_pods_on_a_node_that_is_gone_do_not_run(lost: range) -> None:
    on_gone = [gang_pod(number, "gone", since=HOUR) for number in lost]

    (row,) = report(*NODES, *THREE, *on_gone, *([] if 7 in lost else [gang_pod(7, "")]))

    assert row.why.startswith("3 of 8 pods of gang bert run")


def test_a_gang_is_broken_by_a_node_that_is_down() -> None:
    nodes = [*NODES[:7], gpu_node("n7", down_for=HOUR)]
    eight = [gang_pod(number, f"n{number}", since=9 * HOUR) for number in range(8)]

    lost, rest = sorted(report(*nodes, *eight), key=lambda each: each.count)

    assert (lost.reason, lost.name, lost.is_down) == ("node-down", "bert-7", True)
    assert (rest.reason, rest.count, rest.since.seconds) == ("partial-gang", 56, NOW - HOUR)


@pytest.mark.parametrize(("down_for", "status"), [(200, "Unknown"), (HOUR, "False")])
def test_the_begin_is_not_known_if_the_pods_of_a_node_that_is_not_ready_can_go_on(down_for: int, status: str) -> None:
    node = gpu_node("n7", down_for=down_for)
    node["status"]["conditions"][0]["status"] = status
    eight = [gang_pod(number, f"n{number}", since=9 * HOUR) for number in range(8)]

    rest = next(each for each in report(*NODES[:7], node, *eight, older_than=60) if each.reason == "partial-gang")

    assert rest.since == (NOW - down_for, False, False)


@pytest.mark.parametrize("cards", [8, 0])
def test_a_failed_pod_breaks_its_gang_at_its_end(cards: int) -> None:
    seven = [gang_pod(number, f"n{number}", since=9 * HOUR) for number in range(7)]
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 1, "finishedAt": ago(2 * HOUR)}}}]
    failed = gang_pod(7, "n7").gpu(cards).status(phase="Failed", containerStatuses=ended)

    (row,) = report(*NODES, *seven, failed)

    assert row.since == (NOW - 2 * HOUR, True, True)


def test_the_pod_group_says_from_how_many_pods_a_gang_runs() -> None:
    elastic = [each.annotate("scheduling.k8s.io/group-name", "bert").scheduler("volcano") for each in THREE]

    assert report(*NODES, *elastic, volcano_group("bert", namespace="team-c", members=3)) == []
    assert names(report(*NODES, *elastic, volcano_group("bert", namespace="team-c", members=4))) == [
        ("partial-gang", "bert")
    ]


@pytest.mark.parametrize("last_bound", [30, 240])
def test_a_gang_that_is_starting_is_not_reported(last_bound: int) -> None:
    starting = [*THREE[:2], gang_pod(2, "n2", since=last_bound)]

    assert report(*NODES, *starting, *WAITING) == []


def test_a_gang_that_completes_is_not_reported() -> None:
    completed = [gang_pod(number, f"n{number}").status(phase="Succeeded") for number in range(3, 8)]

    assert report(*NODES, *THREE, *completed) == []


def test_a_gang_that_is_deleted_is_not_reported() -> None:
    assert report(*NODES, *(each.deletion(ago(-HOUR)) for each in THREE)) == []


@pytest.mark.parametrize("older_than", [0, 300])
def test_a_gang_with_a_pod_within_its_grace_period_is_not_reported(older_than: int) -> None:
    last = gang_pod(7, "n7").deletion(ago(-HOUR))

    assert report(*NODES, *(gang_pod(n, f"n{n}") for n in range(7)), last, older_than=older_than) == []


def test_a_gang_on_a_node_that_is_down_since_an_unknown_time_has_no_begin() -> None:
    down = gpu_node("n7", taints=("node.kubernetes.io/unreachable:NoExecute",))
    down["status"]["conditions"] = []

    rows = report(*NODES[:7], down, *(gang_pod(n, f"n{n}") for n in range(8)))

    assert {each.reason: each.since.is_known for each in rows} == {"node-down": False, "partial-gang": False}


def test_a_gang_is_not_reported_while_a_pod_of_it_is_debugged() -> None:
    debugger = {"name": "debugger", "state": {"running": {"startedAt": ago(60)}}}
    debugged = THREE[2].status(**{**THREE[2].obj()["status"], "ephemeralContainerStatuses": [debugger]})

    assert report(*NODES, *THREE[:2], debugged, *WAITING) == []


def test_a_pod_of_a_gang_that_does_not_start_has_no_row_of_its_own() -> None:
    crashing = waiting(THREE[2], "ImagePullBackOff", HOUR)

    assert names(report(*NODES, *THREE[:2], crashing, *WAITING)) == [("partial-gang", "bert")]


def launcher(node: str = "n3", cards: int | None = None) -> PodBuilder:
    """Return a pod of the gang without cards, or with a request of `cards`."""
    pod = make_pod("launcher").namespace("team-c").annotate(GANG, "bert").annotate(GANG_SIZE, "4").creation(ago(HOUR))
    pod = pod if cards is None else pod.gpu(cards)
    return running(pod.node_name(node), HOUR) if node else pod.status(phase="Pending")


def workers(count: int) -> list[PodBuilder]:
    return [gang_pod(number, f"n{number}", size=4, since=2 * HOUR) for number in range(count)]


@pytest.mark.parametrize("cards", [None, 0])
def test_a_pod_without_cards_is_a_member_of_its_gang(cards: int | None) -> None:
    assert report(*NODES, *workers(3), launcher(cards=cards)) == []

    (row,) = report(*NODES, *workers(2), launcher(cards=cards), gang_pod(3, "", since=HOUR))

    assert row.why == "3 of 4 pods of gang bert run, 1 wait"
    assert (row.count, len(row.pods)) == (16, 2)


def test_a_gang_waits_for_a_pod_without_cards() -> None:
    (row,) = report(*NODES, *workers(3), launcher(""))

    assert (row.why, row.since) == ("3 of 4 pods of gang bert run, 1 wait", (NOW - HOUR, True, True))


def test_a_gang_whose_launcher_is_deleted_is_broken_since_then() -> None:
    (row,) = report(*NODES, *workers(3), launcher().deletion(ago(HOUR)))

    assert (row.why, row.since) == ("3 of 4 pods of gang bert run", (NOW - HOUR, True, True))


def test_a_gang_whose_launcher_has_completed_is_not_reported() -> None:
    assert report(*NODES, *workers(2), launcher().status(phase="Succeeded")) == []


def test_a_completed_pod_with_malformed_labels_is_in_no_gang() -> None:
    malformed = launcher().status(phase="Succeeded").obj()
    malformed["metadata"]["labels"] = ["x"]

    assert names(report(*NODES, *workers(2), malformed)) == [("partial-gang", "bert")]


def test_a_pod_without_cards_is_a_member_of_its_pod_group() -> None:
    pods = [*(gang_pod(number, f"n{number}", size=9) for number in range(3)), launcher()]
    members = [each.annotate("scheduling.k8s.io/group-name", "bert").scheduler("volcano") for each in pods]
    group = volcano_group("bert", namespace="team-c", members=4)

    assert report(*NODES, group, *members) == []
    assert names(report(*NODES, group, *members[:2], members[3])) == [("partial-gang", "bert")]


def test_a_pod_without_cards_is_a_member_of_its_pod_group_of_kube_scheduler() -> None:
    pods = [each.obj() for each in (*(gang_pod(number, f"n{number}", size=9) for number in range(3)), launcher())]
    for each in pods:
        each["spec"]["schedulingGroup"] = {"podGroupName": "bert"}
    group = pod_group("bert", group="scheduling.k8s.io", namespace="team-c", members=4)
    objects = objects_of([*NODES, group, *pods])
    objects.policy = policy_with(schedulers={"default-scheduler": {"backend": "native"}})

    assert held_rows(objects, NOW, 0) == []


def test_a_gang_whose_pod_group_cannot_be_read_is_not_reported() -> None:
    """It can be elastic."""
    grouped = [pod.annotate("scheduling.k8s.io/group-name", "bert").scheduler("volcano") for pod in (*THREE, *WAITING)]
    others = volcano_group("other", namespace="team-c")

    assert names(report(*NODES, *grouped)) == []
    assert names(report(*NODES, *grouped, others)) == [("partial-gang", "bert")]


@pytest.mark.parametrize(("nominated", "rows"), [(5, 0), (4, 1)])
def test_a_gang_whose_other_pods_have_a_nominated_node_is_starting(nominated: int, rows: int) -> None:
    others = [pod.status(nominatedNodeName=f"n{number}") for number, pod in enumerate(WAITING[:nominated], start=3)]

    assert len(report(*NODES, *THREE, *others, *WAITING[nominated:])) == rows


@pytest.mark.parametrize("is_of_kueue", [True, False])
def test_only_a_gang_of_kueue_is_evicted_by_kueue(is_of_kueue: bool) -> None:
    label = "kueue.x-k8s.io/queue-name" if is_of_kueue else "app"
    objects = objects_of((*NODES, *(pod.label(label, "research") for pod in (*THREE, *WAITING))))
    evidence = SchedulerEvidence(frozenset(), "", pods_ready_timeout="30m")
    objects.snapshot = replace(objects.snapshot, scheduler_evidence=evidence)

    (row,) = held_rows(objects, NOW, 300)

    assert row.remedy.text == f"delete Job bert{'; Kueue evicts it after 30m' if is_of_kueue else ''}"
