"""The args of plugins in a KubeSchedulerConfiguration.

Source: k8s.io/kube-scheduler/config/v1/types_pluginargs.go, and
k8s.io/kubernetes/pkg/scheduler/apis/config/validation/validation_pluginargs.go
"""

from itertools import pairwise
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator, model_validator

from webhook.kube.names import QUALIFIED_NAME_RULE, is_qualified_name
from webhook.policy.spec.fields import StrictModel, wrong

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"

T = TypeVar("T")

# Strict models do not accept a list for a tuple; YAML has only lists.
Items = Annotated[tuple[T, ...], Field(strict=False)]


def within(low: int, high: int) -> AfterValidator:
    """Return a validator that a number is at least `low` and at most `high`."""

    def check(number: int) -> int:
        if not low <= number <= high:
            raise wrong(f"must be in the range {low}-{high}")
        return number

    return AfterValidator(check)


def _qualified(text: str) -> str:
    if not is_qualified_name(text):
        raise wrong(QUALIFIED_NAME_RULE)
    return text


Percentage = Annotated[int, within(0, 100)]
QualifiedName = Annotated[str, AfterValidator(_qualified)]
ScoringStrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class Args(StrictModel):
    """Args of a plugin; `apiVersion` and `kind` are optional."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"] = API_VERSION
    kind: str = ""


class ResourceSpec(StrictModel):
    """A resource and its weight; 0 is the default weight."""

    name: str
    weight: Annotated[int, within(0, 100)] = 1


class UtilizationShapePoint(StrictModel):
    """A point of a broken line: the score at a utilization."""

    utilization: Percentage
    score: Annotated[int, within(0, 10)]


def rising(shape: tuple[UtilizationShapePoint, ...]) -> tuple[UtilizationShapePoint, ...]:
    """Return `shape`, whose points must be sorted.

    Raises:
        ValueError: they are not.
    """
    for before, point in pairwise(shape):
        if before.utilization >= point.utilization:
            raise wrong("must be sorted by utilization, each point above the one before")
    return shape


class RequestedToCapacityRatioParam(StrictModel):
    """The broken line of RequestedToCapacityRatio."""

    shape: Items[UtilizationShapePoint] = ()

    @field_validator("shape")
    @classmethod
    def _rises(cls, shape: tuple[UtilizationShapePoint, ...]) -> tuple[UtilizationShapePoint, ...]:
        if not shape:
            raise wrong("must hold at least one point")
        return rising(shape)


class ScoringStrategyArgs(StrictModel):
    """The scoring strategy of NodeResourcesFit."""

    type: ScoringStrategyType
    resources: Items[ResourceSpec] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    @model_validator(mode="after")
    def _has_a_shape(self) -> "ScoringStrategyArgs":
        if (self.type == "RequestedToCapacityRatio") != (self.requested_to_capacity_ratio is not None):
            raise wrong("requestedToCapacityRatio must be set with type RequestedToCapacityRatio, and with it alone")
        return self


def _is_group(text: str) -> str:
    if "/" in text or not is_qualified_name(text):
        raise wrong("must be the part of a resource's name before the slash, like example.com")
    return text


class NodeResourcesFitArgs(Args):
    """Args of NodeResourcesFit."""

    ignored_resources: Items[QualifiedName] = ()
    ignored_resource_groups: Items[Annotated[str, AfterValidator(_is_group)]] = ()
    scoring_strategy: ScoringStrategyArgs = ScoringStrategyArgs(type="LeastAllocated")


class NodeResourcesBalancedAllocationArgs(Args):
    """Args of NodeResourcesBalancedAllocation; every weight is 1."""

    resources: Items[ResourceSpec] = ()

    @field_validator("resources")
    @classmethod
    def _weigh_alike(cls, resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
        if any(resource.weight not in (0, 1) for resource in resources):
            raise wrong("each weight must be 1")
        if len({resource.name for resource in resources}) < len(resources):
            raise wrong("must not hold a resource twice")
        return resources


class InterPodAffinityArgs(Args):
    """Args of InterPodAffinity."""

    hard_pod_affinity_weight: Percentage = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class DefaultConstraint(StrictModel):
    """A TopologySpreadConstraint without a selector, which is derived from the pod's Services and owner."""

    max_skew: int
    topology_key: QualifiedName
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: Items[str] = ()

    @field_validator("max_skew", "min_domains")
    @classmethod
    def _positive(cls, number: int | None) -> int | None:
        if number is not None and number <= 0:
            raise wrong("must be greater than 0")
        return number


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
    shape: Annotated[Items[UtilizationShapePoint], AfterValidator(rising)] = ()


class DynamicResourcesArgs(Args):
    """Args of DynamicResources."""

    filter_timeout: str = "10s"
    binding_timeout: str = "600s"
