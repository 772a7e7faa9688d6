"""Settings of schedulers and of how pods share nodes: bin-packing, spreading, node templates."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from webhook.kube import names as wellknown
from webhook.policy.spec.field_types import (
    Count,
    LabelKey,
    LabelText,
    LabelValue,
    Quantity,
    ResourceName,
    StrictModel,
    Subdomain,
    Values,
    Weight,
    checked,
)

BackendName = Literal["default", "volcano", "kai", "coscheduling", "native"]


class SchedulerSettings(StrictModel):
    """The kind of a scheduler, and what the webhook adds for its pods."""

    backend: BackendName = "default"
    """The kind: `default`, a profile of kube-scheduler; `volcano`; `kai`; `coscheduling`, a profile with the plugin of
    scheduler-plugins; or `native`, kube-scheduler with its own gang scheduling. It decides the labels, annotations and
    fields that the annotations `queue`, `gang`, `gpu-fraction` and `preemptible` become. See docs/schedulers.md."""

    bin_packing_hint: bool = True
    """Add the preferred podAffinity of bin-packing to pods of this scheduler, beside what the scheduler packs by
    itself."""

    topology_name: Subdomain | None = None
    """The name of the Topology object of KAI whose levels have the labels that `within` names. Only for `backend: kai`.
    If absent, `within` has no effect for pods of this scheduler."""

    tiers: dict[LabelKey, Count] = Field(default={})
    """The tiers of Volcano's HyperNodes, by the entry of `topologyAliases` or the topology key that `within` names:
    `{rack: 1, zone: 3}`. Only for `backend: volcano`. `within` has no effect over a topology without a tier."""


_DEFAULT = SchedulerSettings()

BUILT_IN_SCHEDULERS: Mapping[str, SchedulerSettings] = MappingProxyType(
    {"volcano": SchedulerSettings(backend="volcano"), "kai-scheduler": SchedulerSettings(backend="kai")}
)


def settings_of(schedulers: Mapping[str, SchedulerSettings], name: str) -> SchedulerSettings:
    """Return the settings of the scheduler `name`: those of the policy, else the built-in ones, else the default."""
    return schedulers.get(name) or BUILT_IN_SCHEDULERS.get(name) or _DEFAULT


class BinPacking(StrictModel):
    """Settings of bin-packing: a label, and a preferred podAffinity for it."""

    label_key: LabelKey = "jobtype"
    """Key of the label of packed pods."""

    label_value: LabelValue = "binpacked"
    """Value of the label of packed pods."""

    weight: Weight = 100
    """Weight of the preferred podAffinity, 1 to 100."""

    topology_key: LabelKey = wellknown.HOSTNAME_LABEL
    """The topology domain that is filled before the next one is used."""

    namespaces: Literal["all", "same"] = "all"
    """The packed pods that a pod prefers to join. `all`: those of every namespace. `same`: those of its own namespace;
    for clusters whose ResourceQuotas of scope CrossNamespacePodAffinity would reject the pod."""


class TypicalPodSpec(StrictModel):
    """One kind of typical pod."""

    resource: LabelKey = "nvidia.com/gpu"
    """Resource of the cards, one of `accelerators`."""

    cpu: Quantity = "0"
    """CPU that such a pod requests."""

    memory: Quantity = "0"
    """Memory that such a pod requests."""

    cards: Count
    """Cards that such a pod requests."""

    weight: Count = 1
    """The frequency of such pods, relative to the others of the same resource."""


class PackGpus(StrictModel):
    """Settings of the score plugin `PackGpus`."""

    mix: Values[TypicalPodSpec] = ()
    """The typical pods. A resource without an entry has the mix of its running pods: see docs/scorer.md."""


class Spread(StrictModel):
    """The rule that keeps the replicas of one owner apart, for pods of a type.

    docs/annotations.md states which pods are replicas of one owner.
    """

    topology: LabelKey | None = None
    """The topology domains that the replicas are spread over: an entry of `topologyAliases`, such as `host`, or a
    topology key. If absent, only pods with the annotation `spread` are spread."""

    mode: Literal["preferred", "required"] = "preferred"
    """`preferred`: the scheduler prefers domains with fewer replicas. `required`: a pod stays Pending if no domain is
    left for it."""

    form: Literal["antiAffinity", "topologySpread"] = "antiAffinity"
    """`antiAffinity`: `podAntiAffinity`; if it is required, a domain has one replica at most. `topologySpread`:
    `topologySpreadConstraints`; the numbers of replicas in two domains differ by `maxSkew` at most. With a constraint
    of its own, kube-scheduler's default spreading over hosts and zones ends for the pod."""

    max_skew: Annotated[int, Field(ge=1, le=1000)] = 1
    """The largest difference between the numbers of replicas in two domains, for `form: topologySpread`."""

    weight: Weight = 100
    """The weight, 1 to 100, for `mode: preferred` with `form: antiAffinity`."""


class WithinDefault(StrictModel):
    """The rule that keeps the pods of a gang together, within one topology domain, for pods of a type.

    docs/gangs.md states which pods are a gang.
    """

    topology: LabelKey | None = None
    """The topology whose domains can each run all pods of a gang: an entry of `topologyAliases`, such as `rack`, or a
    topology key. If absent, only gangs with the annotation `within` are kept together."""

    mode: Literal["preferred", "required"] = "preferred"
    """`preferred`: the scheduler prefers one domain. `required`: a pod of the gang stays Pending if its domain has no
    room. It is the default of the annotation `within-mode`, too."""


TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class TemplateTaint(StrictModel):
    """A taint of a new node."""

    key: LabelKey
    """Key of the taint."""

    value: LabelText = ""
    """Value of the taint, which may be empty."""

    effect: TaintEffect
    """Effect on pods that do not tolerate the taint; `NoExecute` also evicts running pods."""


class NodeTemplate(StrictModel):
    """The shape of nodes that an autoscaler can add, even if the cluster has none of them now."""

    name: Subdomain
    """The name in messages."""

    labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels of a new node. It also gets its own `kubernetes.io/hostname` and, unless they are set here,
    `kubernetes.io/os: linux` and `kubernetes.io/arch: amd64`."""

    taints: Values[TemplateTaint] = ()
    """Taints of a new node."""

    capacity: Annotated[dict[ResourceName, Quantity], checked(bool, "must hold at least one resource")]
    """Allocatable resources of a new node, as Quantities. The default for `pods` is 110."""
