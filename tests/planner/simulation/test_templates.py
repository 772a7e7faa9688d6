"""The template of a pod of a trace: who places it, at which priority, and how long it ends."""

from typing import Any

import pytest

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.templates import Template, Templates
from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.programs.traces import POLICIES, experiment, gpu_nodes, lines
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PROFILES, Profile

TRAINING = make_pod("p").annotate(TYPE, "training").gpu(1)
PLAIN = make_pod("p").requests(cpu="1")


def template_of(pod: PodBuilder, profile: str = "", **fields: Any) -> Template:
    """Return the template of `pod` in a cluster with a PriorityClass."""
    trace = experiment(gpu_nodes(8), lines("0,,cpu=1"))
    configured = fields.pop("configured", None)
    templates = Templates(POLICIES, profile, configured, trace.snapshot, trace.is_card, **fields)
    found = templates.of(Arrival(0, None, pod.obj(), 1, "trace"))
    assert isinstance(found, Template)
    return found


@pytest.mark.parametrize(
    ("pod", "priority"),
    [
        (TRAINING, 7),
        (PLAIN, 0),
        (TRAINING.spec(priority=0), 0),
        (TRAINING.spec(priority=3), 3),
        (TRAINING.spec(priorityClassName="system-node-critical"), 2_000_001_000),
    ],
)
def test_priority_of_a_type_is_for_pods_without_their_own(pod: PodBuilder, priority: int) -> None:
    found = template_of(pod, priorities={"training": 7})

    assert found.priority == priority
    assert found.running.priority == priority


@pytest.mark.parametrize(
    ("profile", "configured", "scheduler", "wanted"),
    [
        ("", {}, "default-scheduler", DEFAULT),
        ("", {}, "volcano", VOLCANO),
        ("", {"volcano": BINPACK}, "volcano", BINPACK),
        ("", {"default-scheduler": BINPACK}, "default-scheduler", BINPACK),
        ("", {"default-scheduler": BINPACK}, "unknown", BINPACK),
        ("", {"default-scheduler": BINPACK}, "volcano", VOLCANO),
        ("binpack", {}, "volcano", PROFILES["binpack"]),
        ("binpack", {"binpack": DEFAULT}, "volcano", DEFAULT),
    ],
)
def test_profile_is_the_chosen_one_then_the_configured_one_then_that_of_the_scheduler(
    profile: str, configured: dict[str, Profile], scheduler: str, wanted: Profile
) -> None:
    found = template_of(PLAIN.scheduler(scheduler), profile, configured=configured)

    assert found.scheduler.scheduler.profile.name == wanted.name


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [({}, 30), ({"terminationGracePeriodSeconds": 0}, 0), ({"terminationGracePeriodSeconds": 90}, 90)],
)
def test_grace_period_is_that_of_the_pod_also_if_it_has_none(spec: dict[str, int], seconds: float) -> None:
    assert template_of(PLAIN.spec(**spec)).grace_seconds == seconds


@pytest.mark.parametrize(
    ("size", "scheduler", "least"),
    [("4", "volcano", 4), ("1", "volcano", 1), ("4", "default-scheduler", 1), ("", "volcano", 1)],
)
def test_gang_is_one_if_its_scheduler_starts_some_of_its_pods_together(size: str, scheduler: str, least: int) -> None:
    pod = TRAINING.annotate("gang", "job").annotate("scheduler", scheduler)
    found = template_of(pod.annotate("gang-size", size) if size else pod)

    assert (found.gang is not None, found.least) == (least > 1, least)


def test_arrivals_that_share_a_pod_share_its_template_or_denial() -> None:
    trace = experiment(gpu_nodes(8), lines("0,,cpu=1"))
    templates = Templates(POLICIES, "", None, trace.snapshot, trace.is_card)
    pods = PLAIN.obj(), PLAIN.obj(), make_pod("p").annotate(TYPE, "unheard-of").obj()
    first, equal, denied = ([templates.of(Arrival(at, None, pod, 1, "trace")) for at in (0, 9)] for pod in pods)

    assert first[0] is first[1]
    # Equal pods of other arrivals have their own template, with the same scheduler.
    assert isinstance(first[0], Template)
    assert isinstance(equal[0], Template)
    assert first[0] is not equal[0]
    assert first[0].scheduler is equal[0].scheduler
    assert isinstance(denied[0], str)
    assert denied[0] is denied[1]
