"""PodDisruptionBudgets: how many of the pods that they select may be evicted or preempted now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_label_selector, selector_matches

DISRUPTION_BUDGET_KIND = "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget. A null selector selects no pod, an empty one all pods of the namespace.

    `disruptions_allowed` is the number in its status. `is_stale` is true if the status is older than the spec.
    `disrupted_pods` are the names of the pods whose eviction the API server has allowed and the controller has not seen
    yet. `healthy` and `desired` are the numbers currentHealthy and desiredHealthy in the status.
    `always_evicts_unhealthy` is true if unhealthyPodEvictionPolicy is AlwaysAllow.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int
    disrupted_pods: frozenset[str] = frozenset()
    is_stale: bool = False
    healthy: int = 0
    desired: int = 0
    always_evicts_unhealthy: bool = False

    @classmethod
    @reading
    def of(cls, budget: Reader) -> "DisruptionBudget":
        """Read a PodDisruptionBudget."""
        metadata, spec, status = budget.object("metadata"), budget.object("spec"), budget.object("status")
        return cls(
            namespace=metadata.text("namespace") or DEFAULT_NAMESPACE,
            name=metadata.text("name"),
            selector=read_label_selector(spec, "selector"),
            disruptions_allowed=status.integer("disruptionsAllowed"),
            disrupted_pods=frozenset(status.text_map("disruptedPods")),
            is_stale=status.integer("observedGeneration") < metadata.integer("generation"),
            healthy=status.integer("currentHealthy"),
            desired=status.integer("desiredHealthy"),
            always_evicts_unhealthy=spec.text("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        )

    @property
    def full_name(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def allowed(self) -> int:
        """Return the number of evictions of healthy pods that the API server allows now; 0 if the status is stale."""
        return 0 if self.is_stale else max(self.disruptions_allowed, 0)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return true if the budget covers a pod with `labels`, which is in its namespace."""
        return selector_matches(self.selector, labels)

    def counts(self, *, is_ready: bool) -> bool:
        """Return true if the eviction of a pod that the budget covers uses one of the allowed disruptions."""
        return is_ready or not (self.always_evicts_unhealthy or self.healthy >= self.desired > 0)


Budgets = Mapping[str, Sequence[DisruptionBudget]]
"""The budgets by namespace."""


def budgets_by_namespace(budgets: Iterable[DisruptionBudget] | None) -> Budgets | None:
    """Return `budgets` by namespace, or None if they are not known."""
    if budgets is None:
        return None
    found: dict[str, list[DisruptionBudget]] = {}
    for each in budgets:
        found.setdefault(each.namespace, []).append(each)
    return found
