"""A rendered decision is reused for equal pods while what it is based on stays the same."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import orjson
import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.servers.server import Clock, make_work_budget
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import Expired
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, place_and_assume
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import Rendered
from webhook.serving.policies.policy_scorer import TimedScorer
from webhook.serving.work_budget import WorkBudget

POLICY = policy_with()
NODE = make_node_object("node-1", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 8})
POD = make_pod("a").annotate(TYPE, "training").toleration(operator="Exists")
TOO_LARGE = POD.gpu(99)
OF_ANOTHER_TYPE = POD.annotate(TYPE, "inference").gpu(1)
GANG = POD.annotate(f"{DOMAIN}/gang", "train").annotate(f"{DOMAIN}/gang-size", "4").gpu(1)
GATED_GANG = GANG.spec(schedulingGates=[{"name": "wait"}])


@dataclass
class CountingScorer:
    """The scheduler, which counts how often it is asked."""

    asked: int = 0
    scheduler: Scheduler = field(default_factory=Scheduler)

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Placement:
        """Return the placement of the scheduler."""
        self.asked += 1
        return self.scheduler.answer(asked, snapshot, expired)

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Rows:
        """Return the rows of the scheduler."""
        return self.scheduler.feasible_rows(asked, snapshot, expired)


@pytest.fixture
def view() -> ClusterView:
    """Return a current view, in which no pod waits."""
    snapshot = snapshot_from_documents([Document("node", NODE)])
    return ClusterView(snapshot, CountingScorer(), assumed=AssumedPods(snapshot))


def decided(
    decisions: DecisionCache,
    cluster: ClusterView | None,
    pod: PodBuilder = POD,
    deadline: float | None = None,
    monotonic_seconds: Callable[[], float] | None = None,
) -> Rendered:
    bounds = WorkBudget(deadline, 150, monotonic_seconds=monotonic_seconds or Clock(), cpu_seconds=lambda: 0.0)
    return decisions.decide(make_request(pod.obj()), POLICY, cluster, bounds)


def admit_another(view: ClusterView) -> None:
    """Let another pod wait for the node."""
    assert view.assumed is not None
    pod = WaitingPod.of(make_pod("other").gpu(1).obj())
    place_and_assume(Scheduler(), "other", pod, view.assumed, "seed")


def asked(view: ClusterView) -> int:
    """Return how often the scorer was asked since the last time."""
    assert isinstance(view.scorer, CountingScorer)
    count, view.scorer.asked = view.scorer.asked, 0
    return count


def has_warning(rendered: Rendered, word: str) -> bool:
    """Return whether the user is warned of `word`."""
    response = orjson.loads(b"{%b}" % rendered.answer.content)
    return any(word in warning for warning in response.get("warnings", ()))


def test_a_decision_is_reused_until_a_pod_takes_room(view: ClusterView) -> None:
    decisions = DecisionCache()
    first = decided(decisions, view)

    assert decided(decisions, view) is first
    assert decided(decisions, replace(view)) is first
    admit_another(view)
    assert decided(decisions, view) is not first


def test_the_placement_of_a_pod_without_room_is_reused_until_a_pod_takes_room(view: ClusterView) -> None:
    reused: list[bool] = []
    decisions = DecisionCache(on_reuse=lambda: reused.append(True))
    first = decided(decisions, view, TOO_LARGE)
    assert (asked(view) > 0, reused) == (True, [])

    assert decided(decisions, view, TOO_LARGE) is first
    assert (asked(view), reused) == (0, [True])

    admit_another(view)
    assert decided(decisions, view, TOO_LARGE) is not first
    assert (asked(view) > 0, reused) == (True, [True])


@pytest.mark.parametrize("later", ["another snapshot", "a stale view", "no view"])
@pytest.mark.parametrize("pod", [POD, TOO_LARGE], ids=["that fits", "without room"])
def test_a_decision_is_not_reused_on_another_view(view: ClusterView, pod: PodBuilder, later: str) -> None:
    decisions = DecisionCache()
    snapshot = replace(view.snapshot, generation=1)
    another = {
        "another snapshot": replace(view, snapshot=snapshot, assumed=AssumedPods(snapshot)),
        "a stale view": replace(view, stale_reason="too old", assumed=None),
        "no view": None,
    }[later]
    first = decided(decisions, view, pod)

    assert decided(decisions, another, pod) is not first
    again = decided(decisions, view, pod)
    assert again is not first
    assert again == first


def test_names_that_the_cluster_lacks_are_warned_of_once_a_stale_view_is_current_again(view: ClusterView) -> None:
    decisions, pod = DecisionCache(), POD.annotate(PRODUCT, "NVIDIA-NONE")
    stale = decided(decisions, replace(view, stale_reason="too old", assumed=None), pod)
    current = decided(decisions, view, pod)

    assert [has_warning(each, "NVIDIA-NONE") for each in (stale, current)] == [False, True]
    assert current == decided(DecisionCache(), view, pod)


@pytest.mark.parametrize("pod", [POD, TOO_LARGE], ids=["that fits", "without room"])
def test_a_decision_that_the_deadline_has_ended_is_not_reused(view: ClusterView, pod: PodBuilder) -> None:
    decisions = DecisionCache()

    ended = decided(decisions, view, pod, deadline=0.0)

    assert ended.is_unknown
    assert decided(decisions, view, pod) == decided(DecisionCache(), view, pod)
    assert not decided(decisions, view, pod).is_unknown


@pytest.mark.parametrize("pod", [OF_ANOTHER_TYPE, GATED_GANG], ids=["of another type", "of a gated gang"])
def test_a_placement_that_lacks_what_the_deadline_has_ended_is_not_reused(view: ClusterView, pod: PodBuilder) -> None:
    in_time = decided(DecisionCache(), replace(view, scorer=scheduler_for(POLICY)), pod)
    lacking = 0
    for checks in range(30, 80, 4):
        current = replace(view, scorer=scheduler_for(POLICY))
        decisions, ticks = DecisionCache(), map(float, count())
        ended = decided(decisions, current, pod, deadline=checks, monotonic_seconds=partial(next, ticks))
        lacking += not ended.is_unknown and ended != in_time
        assert decided(decisions, current, pod) == in_time

    assert lacking > 0


def test_reused_checks_count_as_checks(view: ClusterView) -> None:
    seconds: list[float] = []
    decider = DecisionCache(on_reuse=lambda: seconds.append(0.0))
    timed = replace(view, scorer=TimedScorer(scheduler_for(POLICY), seconds.append))
    counts = []
    for pod, cluster in ((POD, timed), (POD, timed), (TOO_LARGE, timed), (TOO_LARGE, timed), (POD, None)):
        decider.decide(make_request(pod.obj()), POLICY, cluster, make_work_budget())
        counts.append(len(seconds))

    assert counts == [1, 2, 3, 4, 4]
    assert seconds[3] == 0.0


def test_a_request_that_creates_no_pod_is_not_cached(view: ClusterView) -> None:
    decisions = DecisionCache()
    for operation in ("DELETE", "CONNECT"):
        found = decisions.decide(make_request(None, operation=operation), POLICY, view, make_work_budget())
        assert found.outcome == "Bypassed"
        assert operation in found.answer.audit_annotations["reason"]
    assert [len(cache) for group in decisions.caches.values() for cache in group] == [0, 0, 0]
