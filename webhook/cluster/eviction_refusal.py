"""The evictions that the API server would reject now because of PodDisruptionBudgets."""

from collections import Counter
from collections.abc import Iterable

from webhook.cluster.objects.disruption_budget import Budgets, DisruptionBudget
from webhook.cluster.pods.bound_pods import BoundPod


def budgets_of(pod: BoundPod, budgets: Budgets) -> list[DisruptionBudget]:
    """Return the `budgets` that the API server checks before it evicts `pod`."""
    return [] if pod.is_disruptable else [each for each in budgets.get(pod.namespace, ()) if each.selects(pod.labels)]


def eviction_refusal(pods: Iterable[BoundPod], budgets: Budgets) -> str:
    """Return why the API server would not evict all of `pods` together now, or "" if it would.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go, EvictionREST.Create and checkAndDecrement
    """
    spent: Counter[DisruptionBudget] = Counter()
    for pod in pods:
        asked = budgets_of(pod, budgets)
        if len(asked) > 1:
            names = " and ".join(sorted(each.full_name for each in asked))
            return f"the PodDisruptionBudgets {names} cover {pod.full_name}; a pod with two of them cannot be evicted"
        spent.update(each for each in asked if each.counts(is_ready=pod.is_ready))
    for budget, count in spent.items():
        if count > budget.allowed:
            allowed = f"only {budget.allowed}" if budget.allowed else "no"
            noun = "disruption" if budget.allowed <= 1 else "disruptions"
            health = f"{budget.healthy} pods are healthy, {budget.desired} must be"
            return f"the PodDisruptionBudget {budget.full_name} allows {allowed} {noun} ({health})"
    return ""
