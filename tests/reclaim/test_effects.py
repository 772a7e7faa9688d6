"""What starts without the pods that hold cards."""

from collections.abc import Callable

import pytest

from tests.reclaim.reports import effects
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import GANG, GANG_SIZE, HOUR, ago, card_pod, gang_pod, gpu_node, waiting
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence

NODES = [gpu_node(f"n{number}") for number in range(4)]
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending(name: str, cards: int = 8, *, created: int = HOUR) -> PodBuilder:
    pod = make_pod(name).namespace("team-e").gpu(cards).creation(ago(created))
    return pod.status(phase="Pending", conditions=[UNSCHEDULABLE])


def gang(name: str, size: int, *, created: int = HOUR) -> list[PodBuilder]:
    members = (pending(f"{name}-{number}", created=created) for number in range(size))
    return [each.annotate(GANG, name).annotate(GANG_SIZE, str(size)) for each in members]


def held(*numbers: int) -> list[PodBuilder]:
    return [waiting(card_pod(f"srv-{number}", f"n{number}"), "ImagePullBackOff", HOUR) for number in numbers]


def used(*numbers: int) -> list[PodBuilder]:
    return [card_pod(f"train-{number}", f"n{number}") for number in numbers]


def test_a_gang_starts_if_all_of_it_has_room_without_the_held_pods() -> None:
    found = effects(*NODES, *held(0, 1), *used(2, 3), *gang("llm", 2))

    assert (found.gangs, found.starting) == (("team-e/llm",), ("team-e/llm",))


def test_a_gang_of_which_a_part_has_room_leaves_it_to_others() -> None:
    found = effects(*NODES, *held(0, 1), *used(2, 3), *gang("llm", 3), pending("eval", created=60))

    assert (found.gangs, found.pods) == (("team-e/llm",), ("team-e/eval",))
    assert found.starting == ("team-e/eval",)


def test_a_pod_without_cards_starts_with_its_gang() -> None:
    launcher = make_pod("llm-launcher").namespace("team-e").creation(ago(HOUR)).status(phase="Pending")
    launcher = launcher.annotate(GANG, "llm").annotate(GANG_SIZE, "3")
    workers = [each.annotate(GANG_SIZE, "3") for each in gang("llm", 2)]

    found = effects(*NODES, *held(0, 1), *used(2, 3), launcher, *workers, pending("eval"))

    assert (found.gangs, found.pods, found.starting) == (("team-e/llm",), ("team-e/eval",), ("team-e/llm",))


def test_a_gang_without_cards_waits_for_none() -> None:
    launcher = make_pod("web").namespace("team-e").annotate(GANG, "web").annotate(GANG_SIZE, "2")

    assert effects(*NODES, *held(0), launcher.status(phase="Pending")).gangs == ()


def test_of_two_gangs_the_first_of_the_queue_starts() -> None:
    two = [*gang("first", 2, created=2 * HOUR), *gang("second", 2, created=HOUR)]

    found = effects(*NODES, *held(0, 1), *used(2, 3), *two)

    assert (found.gangs, found.starting) == (("team-e/first", "team-e/second"), ("team-e/first",))


def test_a_pod_of_a_higher_priority_starts_before_an_older_one() -> None:
    urgent = pending("urgent", created=60).spec(priority=100)

    found = effects(*NODES, *held(0), *used(1, 2, 3), pending("older"), urgent)

    assert (found.pods, found.starting) == (("team-e/urgent", "team-e/older"), ("team-e/urgent",))


def test_what_fits_already_does_not_count() -> None:
    found = effects(*NODES, *held(0), *used(2, 3), pending("eval", created=2 * HOUR), pending("next"))

    assert (found.pods, found.starting) == (("team-e/next",), ("team-e/next",))


def test_the_rest_of_a_held_gang_does_not_start_without_the_part_that_holds() -> None:
    part = [gang_pod(number, f"n{number}", size=4) for number in range(3)]

    found = effects(*NODES, *part, *used(3), gang_pod(3, "", size=4))

    assert (found.gangs, found.starting) == (("team-c/bert",), ())


def gated(pod: PodBuilder) -> PodBuilder:
    return pod.spec(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])


def deleted(pod: PodBuilder) -> PodBuilder:
    """Return the pod as a finalizer, such as that of a Job, keeps it."""
    return pod.deletion(ago(60))


@pytest.mark.parametrize("kept", [gated, deleted])
def test_pods_that_wait_for_a_gate_or_are_deleted_do_not_count(kept: Callable[[PodBuilder], PodBuilder]) -> None:
    found = effects(*NODES, *held(0), *used(1, 2, 3), kept(pending("kept")), pending("eval", created=60))

    assert (found.pods, found.starting) == (("team-e/eval",), ("team-e/eval",))


@pytest.mark.parametrize(("cards", "kept"), [(cards, kept) for cards in (0, 8) for kept in (gated, deleted)])
def test_a_gang_does_not_start_while_a_needed_member_waits_for_a_gate_or_is_deleted(
    cards: int, kept: Callable[[PodBuilder], PodBuilder]
) -> None:
    members = [each.annotate(GANG_SIZE, "3") for each in gang("llm", 2)]
    last = pending("llm-2", cards) if cards else make_pod("llm-2").namespace("team-e").status(phase="Pending")
    last = last.annotate(GANG, "llm").annotate(GANG_SIZE, "3")

    assert effects(*NODES, *held(0, 1, 2), *used(3), *members, last).starting == ("team-e/llm",)
    assert effects(*NODES, *held(0, 1, 2), *used(3), *members, kept(last)).starting == ()


def test_cards_on_a_node_that_is_down_free_nothing() -> None:
    nodes = [gpu_node("n0", down_for=HOUR), *NODES[1:]]

    found = effects(*nodes, card_pod("lost", "n0").deletion(ago(HOUR)), *used(1, 2, 3), pending("eval"))

    assert (found.pods, found.starting) == (("team-e/eval",), ())


def test_a_nominated_pod_takes_its_room_once() -> None:
    nominated = pending("eval").status(phase="Pending", nominatedNodeName="n0")

    found = effects(*NODES, *held(0), *used(1, 2, 3), nominated)

    assert (found.pods, found.starting) == (("team-e/eval",), ("team-e/eval",))


def test_the_pods_of_a_scheduler_that_does_not_run_do_not_start() -> None:
    pods, evidence = [*held(0), *used(1, 2, 3)], SchedulerEvidence(frozenset(), "")

    assert effects(*NODES, *pods, pending("other").scheduler("other"), evidence=evidence).starting == ()
    assert effects(*NODES, *pods, pending("other").scheduler("other")).starting == ("team-e/other",)


def test_only_the_first_pods_of_a_long_queue_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    two, pods = [pending("first", created=2 * HOUR), pending("second")], [*held(0, 1), *used(2, 3)]
    every = effects(*NODES, *pods, *two)
    monkeypatch.setattr("placement_reclaim.effects.MOST_PENDING", 2)
    exactly = effects(*NODES, *pods, *two)
    monkeypatch.setattr("placement_reclaim.effects.MOST_PENDING", 1)

    assert exactly == every
    assert (every.starting, every.is_complete) == (("team-e/first", "team-e/second"), True)
    assert effects(*NODES, *pods, *two) == ((), ("team-e/first",), ("team-e/first",), False)
