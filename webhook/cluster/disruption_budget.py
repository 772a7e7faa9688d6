"""PodDisruptionBudgets: which evictions the API server would refuse now."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webhook.cluster.pods.bound_pods import BoundPod
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_label_selector, selector_matches

DISRUPTION_BUDGET_API_VERSION, DISRUPTION_BUDGET_KIND = "policy/v1", "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget that allows `allowed` more disruptions of healthy pods.

    `healthy` of the `desired` pods are healthy. `always_evicts_unhealthy` is its policy AlwaysAllow for unhealthy pods.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    healthy: int
    desired: int
    always_evicts_unhealthy: bool

    @classmethod
    @reading
    def of(cls, budget: Reader) -> "DisruptionBudget":
        """Read a PodDisruptionBudget. One whose status is older than its spec allows no disruption, as upstream."""
        metadata, spec, status = budget.object("metadata"), budget.object("spec"), budget.object("status")
        policy = spec.text("unhealthyPodEvictionPolicy")
        is_old = metadata.integer("generation") > status.integer("observedGeneration")
        allowed = status.integer("disruptionsAllowed")
        return cls(
            namespace=metadata.text("namespace") or DEFAULT_NAMESPACE,
            name=metadata.text("name"),
            selector=read_label_selector(spec, "selector"),
            allowed=0 if is_old else max(allowed, 0),
            healthy=status.integer("currentHealthy"),
            desired=status.integer("desiredHealthy"),
            always_evicts_unhealthy=policy == "AlwaysAllow",
        )

    @property
    def full_name(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def selects(self, pod: BoundPod) -> bool:
        """Return true if the budget covers `pod`, which is in its namespace."""
        return selector_matches(self.selector, pod.labels)

    def counts(self, pod: BoundPod) -> bool:
        """Return true if the eviction of `pod`, which the budget covers, uses one of the allowed disruptions."""
        is_free = self.always_evicts_unhealthy or self.healthy >= self.desired > 0
        return pod.is_ready or not is_free


Budgets = Mapping[str, Sequence[DisruptionBudget]]
"""The budgets by namespace."""


def budgets_of(pod: BoundPod, budgets: Budgets) -> list[DisruptionBudget]:
    """Return the `budgets` that the API server asks before it evicts `pod`."""
    return [] if pod.is_disruptable else [each for each in budgets.get(pod.namespace, ()) if each.selects(pod)]


def eviction_refusal(pods: Iterable[BoundPod], budgets: Budgets) -> str:
    """Return why the API server would refuse to evict all of `pods` now, or an empty string if it would not.

    Several pods of one budget add up.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go, EvictionREST.Create and checkAndDecrement
    """
    spent: Counter[DisruptionBudget] = Counter()
    for pod in pods:
        asked = budgets_of(pod, budgets)
        if len(asked) > 1:
            names = " and ".join(sorted(each.full_name for each in asked))
            return f"the PodDisruptionBudgets {names} cover {pod.full_name}; a pod with two of them cannot be evicted"
        spent.update(each for each in asked if each.counts(pod))
    for budget, count in spent.items():
        if count > budget.allowed:
            allowed = f"only {budget.allowed}" if budget.allowed else "no"
            noun = "disruption" if budget.allowed <= 1 else "disruptions"
            health = f"{budget.healthy} pods are healthy, {budget.desired} must be"
            return f"the PodDisruptionBudget {budget.full_name} allows {allowed} {noun} ({health})"
    return ""
