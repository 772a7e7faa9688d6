"""Pods that may be evicted, and the preemption that is predicted for a pod."""

from tests.support.objects.builders import PodBuilder, make_pod
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Snapshot
from webhook.kube.selectors import exact_selector
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

ROOM = {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}
TWO_CARDS = {"cpu": "8", "nvidia.com/gpu": "2", "pods": "10"}


def running(name: str, priority: int = 0, cards: int = 0, started: str = "") -> PodBuilder:
    pod = (make_pod(name).gpu(cards) if cards else make_pod(name)).spec(priority=priority, nodeName="n")
    return pod.status(startTime=started) if started else pod


def preempting(pod: PodBuilder, *nodes: NodeInfo, budgets: tuple[DisruptionBudget, ...] = ()) -> PredictedPreemption:
    """Return the preemption for `pod`, of priority 100, on `nodes`."""
    signature = PodSignature.of(pod.spec(priority=100).obj())
    found = Scheduler().preemption(signature, Snapshot.of(nodes, disruption_budgets=budgets))
    assert found is not None
    return found


def victims(pod: PodBuilder, *nodes: NodeInfo, budgets: tuple[DisruptionBudget, ...] = ()) -> list[str]:
    """The names of the pods that are certainly evicted, the most important first."""
    found = preempting(pod, *nodes, budgets=budgets)
    assert found.is_exact, found.why
    return [each.name for each in found.victims]


def budget(allowed: int, *, disrupted: frozenset[str] = frozenset(), is_stale: bool = False) -> DisruptionBudget:
    """A PodDisruptionBudget of the pods with the label app=web."""
    return DisruptionBudget("default", "web", exact_selector({"app": "web"}), allowed, disrupted, is_stale)
