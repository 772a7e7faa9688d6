"""The PlacementPolicy document.

The docstrings of its fields are the reference page (docs/policy.md) and the descriptions in the JSON schema.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from webhook.kube import wellknown
from webhook.policy.fields import (
    Card,
    KeyDomain,
    LabelKey,
    LabelValue,
    NamespacePattern,
    ProductPattern,
    ResourcePattern,
    Seconds,
    SomeValues,
    StrictModel,
    Subdomain,
    Values,
    Weight,
    not_empty,
    wrong,
)
from webhook.policy.node_template import NodeTemplate

API_VERSION = "placement.maip.mxsf.io/v1alpha1"
KIND = "PlacementPolicy"

CheckMode = Literal["off", "warn", "deny"]
ScorerProfile = Literal["default", "binpack"]


class NodeUsage(StrictModel):
    """Which node pools, by their `KEY-DOMAIN/node.usage` label and taint, pods of a type may use."""

    allow: SomeValues[LabelValue]
    """Values of the `node.usage` label. The pod must run on one of them (required node affinity) and tolerates the
    `NoSchedule` taint of each."""

    prefer: dict[LabelValue, Weight] = Field(default={})
    """Weights, 1 to 100, of the values that pods of this type rather use (preferred node affinity). Each of them must
    stand in `allow`."""


class WorkloadType(StrictModel):
    """What a value of the annotation `workload-type` means."""

    node_usage: NodeUsage
    """The node pools of this type."""

    scheduler_name: LabelValue | None = None
    """The scheduler of pods that name none; absent: left as it is. Must stand in `allowedSchedulers`."""

    bin_packing: bool = False
    """Whether pods of this type are drawn to nodes that already run packed pods."""

    allowed_namespaces: Values[NamespacePattern] = ("*",)
    """Namespaces whose pods may ask for this type, each a name or a pattern with `*`. A type brings tolerations, and
    tolerations are a privilege."""


class Accelerator(StrictModel):
    """One vendor's cards: the resources that pods request and the labels that its nodes carry."""

    name: LabelValue
    """What messages call it."""

    resources: SomeValues[ResourcePattern]
    """Extended resources by which a pod asks for such a card; `*` at the end stands for any ending."""

    card: Card
    """`VENDOR-DOMAIN/CARD`: nodes carry the labels `CARD.product`, `CARD.count` and `CARD.memory` (MiB of one card),
    and the taint `CARD.product`."""

    driver_label: LabelKey | None = None
    """The label with the major version of the driver, an integer; absent: `CARD.driver-version`."""


class BinPacking(StrictModel):
    """How pods are drawn together: a label, and a preferred podAffinity on it."""

    label_key: LabelKey = "jobtype"
    """Key of the label that packed pods carry."""

    label_value: LabelValue = "binpacked"
    """Its value."""

    weight: Weight = 100
    """Weight of the preferred podAffinity, 1 to 100."""

    topology_key: LabelKey = wellknown.HOSTNAME_LABEL
    """The domain that is filled before the next one is opened."""


class PlacementCheck(StrictModel):
    """Whether admission asks the scorer for a feasible node, and what follows from its verdict."""

    mode: CheckMode = "warn"
    """`off`: not asked. `warn`: the message of a pod that no node can take now goes to the user as a warning. `deny`: a
    pod that no node could ever take (verdict Infeasible, never Waiting or Unknown) is refused, but not where that is in
    doubt: see docs/scorer.md."""

    floor: CheckMode = "off"
    """The laxest mode that the annotation `placement-check` can choose."""

    profile: ScorerProfile = "default"
    """The scheduler profile whose choice is foretold: kube-scheduler's default, or `binpack` (MostAllocated)."""

    work_budget_milliseconds: Annotated[int, Field(ge=1, le=10_000)] = 150
    """How much processor time the scorer may spend on one pod, reading it included. A pod that needs more, as only one
    with thousands of terms or labels does, has the verdict Unknown; its patch goes out all the same."""

    max_view_age_seconds: Seconds = 60
    """How old the view of a live cluster may be, counted since it was last known to be current. With an older one, as
    when the API server is away, every verdict is Unknown. A view of a quiet cluster is up to 36 seconds old, and
    never older than 0.6 of this: with less than 60, the API server is asked more often. With 1 it can be a little
    older."""


class PolicySpec(StrictModel):
    """The rules. Every field has a default; `spec: {}` is the built-in policy."""

    key_domain: KeyDomain = "maip.mxsf.io"
    """The domain of every annotation, of the `node.usage` label and taint."""

    workload_types: dict[LabelValue, WorkloadType] = Field(
        default={
            "training": WorkloadType(
                node_usage=NodeUsage(allow=("training", "hybrid"), prefer={"training": 100}),
                scheduler_name="volcano",
                bin_packing=True,
            ),
            "inference": WorkloadType(node_usage=NodeUsage(allow=("inference", "hybrid"), prefer={"inference": 100})),
        }
    )
    """The values of the annotation `workload-type`. A policy that lists types lists all of them."""

    accelerators: Values[Accelerator] = (
        Accelerator(
            name="nvidia",
            resources=("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
            card="nvidia.com/gpu",
            driver_label="nvidia.com/cuda.driver-version.major",
        ),
        Accelerator(name="amd", resources=("amd.com/gpu",), card="amd.com/gpu"),
        Accelerator(name="huawei", resources=("huawei.com/npu", "huawei.com/Ascend*"), card="huawei.com/npu"),
        Accelerator(name="cambricon", resources=("cambricon.com/mlu*",), card="cambricon.com/mlu"),
        Accelerator(name="hygon", resources=("hygon.com/dcu*",), card="hygon.com/dcu"),
    )
    """The vendors. A pod's accelerator is the first one whose resource it requests; of a pod that requests none, the
    first of the list."""

    product_affinity: bool = True
    """Whether `gpu-product` also requires the product label of the node. A toleration permits and only affinity
    attracts; switch this off where nodes are kept apart by taints alone."""

    allowed_products: dict[ProductPattern, Values[NamespacePattern]] = Field(default={})
    """For products that are a privilege, or patterns with `*`, the namespaces whose pods may ask for them with
    `gpu-product`, each a name or a pattern with `*`. Where several match a product, one that has the namespace is
    enough. A product that none matches is for every namespace."""

    bin_packing: BinPacking = BinPacking()
    """How pods of types with `binPacking: true` are drawn together."""

    topology_aliases: dict[LabelValue, LabelKey] = Field(
        default={
            "host": wellknown.HOSTNAME_LABEL,
            "rack": "topology.kubernetes.io/rack",
            "zone": wellknown.ZONE_LABEL,
        }
    )
    """Short names of topology keys for the annotation `spread`."""

    allowed_schedulers: Values[LabelValue] = (
        wellknown.DEFAULT_SCHEDULER,
        "volcano",
        "kai-scheduler",
        "binpack-scheduler",
    )
    """Schedulers that the annotation `scheduler` can choose. Must hold the `schedulerName` of every workload type."""

    opt_out_namespaces: Values[NamespacePattern] | None = None
    """Namespaces whose pods may be left alone by `inject: disabled`, each a name or a pattern with `*`. Elsewhere the
    annotation has no effect, and a warning says so. Absent: every namespace, but none where `placementCheck.floor` is
    `deny`."""

    placement_check: PlacementCheck = PlacementCheck()
    """The placement check at admission."""

    node_templates: Annotated[tuple[NodeTemplate, ...], Field(strict=False)] = ()
    """The nodes that an autoscaler can add. A pod that no node of the cluster could ever take, but an empty one of
    these, is Waiting instead of Infeasible."""

    invalid_annotations: Literal["deny", "warn"] = "deny"
    """What becomes of a pod with a bad annotation: refused, or admitted with a warning and without what that annotation
    asked for (a bad workload type: without any injection)."""

    @field_validator("workload_types")
    @classmethod
    def _some_type(cls, types: dict[str, WorkloadType]) -> dict[str, WorkloadType]:
        if not types:
            raise wrong("must hold at least one workload type")
        return types

    @field_validator("accelerators")
    @classmethod
    def _accelerators_have_names_of_their_own(cls, accelerators: tuple[Accelerator, ...]) -> tuple[Accelerator, ...]:
        names = [accelerator.name for accelerator in accelerators]
        if len(set(names)) < len(names):
            raise wrong("each accelerator must have a name of its own")
        return not_empty(accelerators)

    @field_validator("node_templates")
    @classmethod
    def _templates_have_names_of_their_own(cls, templates: tuple[NodeTemplate, ...]) -> tuple[NodeTemplate, ...]:
        if len({template.name for template in templates}) < len(templates):
            raise wrong("each node template must have a name of its own")
        return templates


class Metadata(StrictModel):
    """The policy's identity."""

    name: Subdomain = "default"
    """Stands in the annotation `placement-policy` of every pod that the policy touched."""

    labels: dict[str, str] = Field(default={})
    """Not read."""

    annotations: dict[str, str] = Field(default={})
    """Not read."""


class PolicyDocument(StrictModel):
    """A PlacementPolicy as it stands in a file."""

    api_version: Literal["placement.maip.mxsf.io/v1alpha1"]
    """`placement.maip.mxsf.io/v1alpha1`"""

    kind: Literal["PlacementPolicy"]
    """`PlacementPolicy`"""

    metadata: Metadata = Metadata()
    """The policy's identity."""

    spec: PolicySpec = PolicySpec()
    """The rules."""
