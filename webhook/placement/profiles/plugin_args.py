"""The args of plugins in a KubeSchedulerConfiguration.

Source: k8s.io/kube-scheduler/config/v1/types_pluginargs.go, and
k8s.io/kubernetes/pkg/scheduler/apis/config/validation/validation_pluginargs.go
"""

from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, model_validator

from webhook.kube.names import is_qualified_name
from webhook.policy.spec.field_types import Items, LabelKey, StrictModel, checked, wrong

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"


def within(low: int, high: int) -> AfterValidator:
    """Return a validator of numbers from `low` to `high`."""
    return checked(lambda number: low <= number <= high, f"must be in the range {low}-{high}")


Percentage = Annotated[int, within(0, 100)]
Positive = Annotated[int, checked(lambda number: number > 0, "must be greater than 0")]
ScoringStrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class Args(StrictModel):
    """Args of a plugin; `apiVersion` and `kind` are optional."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"] = API_VERSION
    kind: str = ""


class ResourceSpec(StrictModel):
    """A resource and its weight. 0 means the default weight."""

    name: str
    weight: Annotated[int, within(0, 100)] = 1


class UtilizationShapePoint(StrictModel):
    """A point of a broken line: the score at a utilization."""

    utilization: Percentage
    score: Annotated[int, within(0, 10)]


_RISING = checked(
    lambda shape: all(before.utilization < point.utilization for before, point in pairwise(shape)),
    "must be sorted by utilization, each point above the one before",
)


class RequestedToCapacityRatioParam(StrictModel):
    """The broken line of RequestedToCapacityRatio."""

    shape: Annotated[Items[UtilizationShapePoint], checked(bool, "must hold at least one point"), _RISING] = ()


class ScoringStrategyArgs(StrictModel):
    """The scoring strategy of NodeResourcesFit."""

    type: ScoringStrategyType
    resources: Items[ResourceSpec] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    @model_validator(mode="after")
    def _has_a_shape(self) -> "ScoringStrategyArgs":
        if (self.type == "RequestedToCapacityRatio") != (self.requested_to_capacity_ratio is not None):
            raise wrong("requestedToCapacityRatio must be set with type RequestedToCapacityRatio, and only with it")
        return self


ResourceGroup = Annotated[
    str,
    checked(
        lambda text: "/" not in text and is_qualified_name(text),
        "must be the part of a resource's name before the slash, like example.com",
    ),
]


class NodeResourcesFitArgs(Args):
    """Args of NodeResourcesFit."""

    ignored_resources: Items[LabelKey] = ()
    ignored_resource_groups: Items[ResourceGroup] = ()
    scoring_strategy: ScoringStrategyArgs = ScoringStrategyArgs(type="LeastAllocated")


class NodeResourcesBalancedAllocationArgs(Args):
    """Args of NodeResourcesBalancedAllocation; every weight is 1."""

    resources: Annotated[
        Items[ResourceSpec],
        checked(lambda resources: all(each.weight in (0, 1) for each in resources), "each weight must be 1"),
        checked(lambda all_of: len({each.name for each in all_of}) == len(all_of), "must not hold a resource twice"),
    ] = ()


class InterPodAffinityArgs(Args):
    """Args of InterPodAffinity."""

    hard_pod_affinity_weight: Percentage = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class DefaultConstraint(StrictModel):
    """A TopologySpreadConstraint without a selector, which is derived from the pod's Services and owner."""

    max_skew: Positive
    topology_key: LabelKey
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: Positive | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: Items[str] = ()


class PodTopologySpreadArgs(Args):
    """Args of PodTopologySpread."""

    default_constraints: Items[DefaultConstraint] = ()
    defaulting_type: Literal["System", "List"] = "System"

    @model_validator(mode="after")
    def _constraints_are_a_list(self) -> "PodTopologySpreadArgs":
        if self.default_constraints and self.defaulting_type != "List":
            raise wrong("defaultingType must be List where there are defaultConstraints")
        pairs = [(each.topology_key, each.when_unsatisfiable) for each in self.default_constraints]
        if len(set(pairs)) < len(pairs):
            raise wrong("defaultConstraints must not hold a topologyKey twice with the same whenUnsatisfiable")
        return self


class NodeSelectorRequirement(StrictModel):
    """A NodeSelectorRequirement."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Items[str] = ()


class NodeSelectorTerm(StrictModel):
    """A NodeSelectorTerm."""

    match_expressions: Items[NodeSelectorRequirement] = ()
    match_fields: Items[NodeSelectorRequirement] = ()


class NodeSelector(StrictModel):
    """A NodeSelector."""

    node_selector_terms: Items[NodeSelectorTerm]


class PreferredSchedulingTerm(StrictModel):
    """A PreferredSchedulingTerm."""

    weight: Annotated[int, within(1, 100)]
    preference: NodeSelectorTerm


class AddedAffinity(StrictModel):
    """A NodeAffinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Items[PreferredSchedulingTerm] = ()


class NodeAffinityArgs(Args):
    """Args of NodeAffinity."""

    added_affinity: AddedAffinity | None = None


class DefaultPreemptionArgs(Args):
    """Args of DefaultPreemption."""

    min_candidate_nodes_percentage: Percentage = 10
    min_candidate_nodes_absolute: Annotated[int, within(0, 2**31 - 1)] = 100


class VolumeBindingArgs(Args):
    """Args of VolumeBinding; releases before 1.37 reject `shape`."""

    bind_timeout_seconds: Annotated[int, within(0, 2**63 - 1)] = 600
    shape: Annotated[Items[UtilizationShapePoint], _RISING] = ()


class DynamicResourcesArgs(Args):
    """Args of DynamicResources."""

    filter_timeout: str = "10s"
    binding_timeout: str = "600s"
