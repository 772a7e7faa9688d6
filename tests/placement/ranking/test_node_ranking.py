"""A ranking of nodes follows the rows that change."""

from tests.placement.ranking.facts import facts
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import BINPACK
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods


def test_scores_are_normalized_anew_once_the_node_with_the_largest_is_full() -> None:
    """The label `good` then counts for more than the taint of the node."""
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("best", 40), ("good", 10))
    ]
    taints = ["a:PreferNoSchedule", "b:PreferNoSchedule"]
    capacity = {"nvidia.com/gpu": "1"}
    # The first node by name also has the best score for taints, so that only the scores for labels change.
    nodes = [
        node("any", capacity=capacity),
        node("best", capacity=capacity, labels={"best": "yes"}),
        node("good", capacity=capacity, labels={"good": "yes"}, taints=taints[:1]),
        node("tainted", capacity=capacity, taints=taints),
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    asked = PodSignature.of(make_pod().gpu(1).affinity(affinity).obj())
    scheduler, assumed = Scheduler(keeps_scores=False), AssumedPods[int](Snapshot.of(nodes))
    assert scheduler.answer(asked, assumed.before(0)).node == "best"

    assumed.assume(0, AssumedPod(RunningPod.of(make_pod().gpu(1).obj()).assumed_on("best", 0), 0))

    assert scheduler.answer(asked, assumed.before(0)).node == "good"


def test_scores_of_nodes_that_get_free_after_all_were_full_keep_their_fractions() -> None:
    capacity = {"nvidia.com/gpu": "1", "cpu": "64", "memory": "256Gi"}
    running = [make_pod(f"runs-{at}").requests(cpu=f"{3000 + 300 * at}m", memory="7Gi") for at in range(4)]
    base = Snapshot.of(node(f"n{at}", pod, capacity=capacity) for at, pod in enumerate(running))
    asked = PodSignature.of(make_pod().gpu(1).requests(cpu="1", memory="3Gi").obj())
    scheduler, assumed = Scheduler(VOLCANO, keeps_scores=False), AssumedPods[int](base)
    holder = RunningPod.of(make_pod().gpu(1).obj())
    for at in range(4):
        assumed.assume(at, AssumedPod(holder.assumed_on(f"n{at}", 0), 0))
    assert scheduler.answer(asked, assumed.before(0)).verdict == "Waiting"

    assumed.forget(range(4))

    anew = Scheduler(VOLCANO, keeps_scores=False).answer(asked, assumed.copy().before(0))
    assert facts(scheduler.answer(asked, assumed.before(0))) == facts(anew)


def test_a_ranking_whose_changes_have_been_dropped_is_made_anew() -> None:
    snapshot = Snapshot.of(node(f"n{number}", capacity={"nvidia.com/gpu": "8"}) for number in range(3))
    pod, scheduler, assumed = make_pod().gpu(4), Scheduler(BINPACK), AssumedPods[int](snapshot)
    signature, running = PodSignature.of(pod.obj()), RunningPod.of(pod.obj())
    log = assumed.before(0).log
    scheduler.answer(signature, assumed.before(0))
    for number in range(3000):
        assumed.forget((number - 1,))
        assumed.assume(number, AssumedPod(running.assumed_on("n2", 0), 0))

    assert (assumed.before(0).log is log, log.since(0)) == (True, None)
    assert scheduler.answer(signature, assumed.before(0)).node == "n2"
