"""A decision rendered for one pod is the same for equal pods."""

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.serving.decisions.decided import decided
from tests.serving.decisions.rendered import answers_and_records, body_of
from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.random.random_pods import pods
from tests.support.servers.server import World
from webhook.admission.pipeline import admit
from webhook.admission.verdict import Allowed
from webhook.placement.framework.result import GangFit, PlacementVerdict
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import Candidate, render, render_like

if TYPE_CHECKING:
    from webhook.admission.mutated_pod import Mutated

NOW = "2026-01-31T12:00:00.000000Z"
NODE = make_node_object("node-1", labels={"kubernetes.io/hostname": "node-1"})
TRAINING = make_pod("a").annotate(TYPE, "training")


@pytest.mark.slow
@given(st.lists(pods(), min_size=1, max_size=3), st.booleans())
def test_answers_and_records_of_equal_pods_are_equal(kinds: list[dict[str, Any]], has_view: bool) -> None:
    cluster = cluster_of({"cluster": [NODE]}) if has_view else None
    renamed = [pod | {"metadata": pod["metadata"] | {"name": f"other-{at}"}} for at, pod in enumerate(kinds)]
    bodies = [body_of(pod, number) for number, pod in enumerate([*kinds, *renamed, *kinds])]

    together = answers_and_records(World(cluster=cluster, now=lambda: NOW), bodies)

    assert together == [answers_and_records(World(cluster=cluster, now=lambda: NOW), [body])[0] for body in bodies]


def test_another_policy_is_named_immediately() -> None:
    world = World()
    admissions, body = world.admissions(), body_of(TRAINING.obj(), 1)
    admissions.answer(body, 1000.0, None)
    world.policy = policy_with(placementCheck={"mode": "off"})

    answer = orjson.loads(admissions.answer(body, 1000.0, None).body)

    assert answer["response"]["auditAnnotations"]["policy"] == world.policy.identity
    assert [record.policy.revision for record in world.records if record.policy][1] == world.policy.revision


def test_record_names_what_is_left_out_of_it_beside_parts_of_an_equal_injection() -> None:
    """The pods differ in their owner only, whose name is too long for a record."""
    longer = make_pod("b").annotate(TYPE, "training").owner("Job", "x" * 3000)
    bodies = [body_of(pod.obj(), number) for number, pod in enumerate((TRAINING.owner("Job", "x"), longer))]

    (_, first), (_, second) = answers_and_records(World(now=lambda: NOW), bodies)

    assert (first.truncated, second.truncated) == ((), ("owner.name: 1976 more characters",))


FEASIBLE = decided(DecisionCache(), TRAINING).placement
GANG = GangFit("g", size=4, fit=3, placed=0)


@pytest.mark.parametrize(
    ("verdict", "gang", "least"),
    [
        pytest.param("Feasible", None, 1, id="a pod that fits"),
        pytest.param("Infeasible", None, None, id="a pod that does not fit"),
        pytest.param("Waiting", None, None, id="a pod that waits for others"),
        pytest.param("Unknown", None, None, id="a pod that was not checked"),
        pytest.param("Feasible", replace(GANG, least=4), 4, id="a gang that starts"),
        pytest.param("Infeasible", replace(GANG, least=4), 4, id="a gang that does not fit"),
        pytest.param("Waiting", replace(GANG, least=4), 4, id="a gang that waits for others"),
        pytest.param("Infeasible", replace(GANG, least=2), 2, id="the smallest gang"),
        pytest.param("Unknown", replace(GANG, least=4), None, id="a gang that was not checked"),
        pytest.param(
            "Infeasible", replace(GANG, own=FEASIBLE), 1, id="a gang that is not whole, with pods bound singly"
        ),
        pytest.param("Infeasible", GANG, None, id="pods bound singly, without a node for this one"),
    ],
)
def test_a_pod_is_a_candidate_for_room_by_the_placement_that_binds_it(
    verdict: PlacementVerdict, gang: GangFit | None, least: int | None
) -> None:
    assert FEASIBLE is not None
    placement = replace(FEASIBLE, verdict=verdict, gang=gang)
    waiting = WaitingPod.of(TRAINING.obj())
    found = Candidate.of(cast("Mutated", SimpleNamespace(waiting=(b"digest", waiting))), placement)
    if least is None:
        assert found is None
    else:
        binds = FEASIBLE if gang is not None and gang.own is not None else placement
        assert found == Candidate(b"digest", waiting, binds, least)
        assert found.placement is binds


def test_the_prediction_is_that_of_the_pod_where_the_pods_of_a_gang_are_bound_singly() -> None:
    request, policy = make_request(TRAINING.obj()), policy_with()
    verdict = admit(request, policy, None)
    assert isinstance(verdict, Allowed)
    own = verdict.placement
    gang = replace(verdict, placement=replace(own, verdict="Infeasible", gang=replace(GANG, own=own)))

    first = render(request, gang, policy)
    again = render_like(gang, policy, first, None)

    assert again is not None
    assert first.prediction is again.prediction is own


def test_a_pod_that_is_held_or_cannot_be_read_is_no_candidate() -> None:
    assert FEASIBLE is not None
    held = WaitingPod.of(TRAINING.spec(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]).obj())
    for waiting in (None, (b"digest", held)):
        assert Candidate.of(cast("Mutated", SimpleNamespace(waiting=waiting)), FEASIBLE) is None
