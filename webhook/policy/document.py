"""The PlacementPolicy document.

The docstrings of its fields are the descriptions in the reference page (docs/policy.md) and in the JSON schema.
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
    """The node pools that pods of a type may use, by their `KEY-DOMAIN/node.usage` label and taint."""

    allow: SomeValues[LabelValue]
    """Values of the `node.usage` label. The pod must run on a node with one of them (required node affinity) and
    tolerates the `NoSchedule` taint of each."""

    prefer: dict[LabelValue, Weight] = Field(default={})
    """Weights, 1 to 100, of the values that pods of this type prefer (preferred node affinity). Each value must also be
    in `allow`."""


class WorkloadType(StrictModel):
    """The settings for one value of the annotation `workload-type`."""

    node_usage: NodeUsage
    """The node pools of this type."""

    scheduler_name: LabelValue | None = None
    """The scheduler of pods that name none. If absent, the scheduler is not changed. Must be in `allowedSchedulers`."""

    bin_packing: bool = False
    """Let pods of this type prefer nodes that already run packed pods."""

    allowed_namespaces: Values[NamespacePattern] = ("*",)
    """Namespaces whose pods may use this type, each a name or a pattern with `*`. A type adds tolerations, and
    tolerations are a privilege."""


class Accelerator(StrictModel):
    """The cards of one vendor: the resources that pods request and the labels of its nodes."""

    name: LabelValue
    """The name in messages."""

    resources: SomeValues[ResourcePattern]
    """Extended resources with which a pod requests such a card; a trailing `*` matches any suffix."""

    card: Card
    """`VENDOR-DOMAIN/CARD`: nodes have the labels `CARD.product`, `CARD.count` and `CARD.memory` (MiB of one card),
    and the taint `CARD.product`."""

    driver_label: LabelKey | None = None
    """The label with the major version of the driver, an integer. If absent: `CARD.driver-version`."""


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


class PlacementCheck(StrictModel):
    """The placement check at admission: whether the scorer looks for a feasible node, and what its verdict leads to."""

    mode: CheckMode = "warn"
    """`off`: no check. `warn`: if no node can run the pod now, the user gets the scorer's message as a warning. `deny`:
    a pod that no node could ever run (verdict Infeasible, never Waiting or Unknown) is denied, unless an exemption
    applies: see docs/scorer.md."""

    floor: CheckMode = "off"
    """The least strict mode that the annotation `placement-check` can choose."""

    profile: ScorerProfile = "default"
    """The scheduler profile that is predicted: kube-scheduler's default, or `binpack` (MostAllocated)."""

    work_budget_milliseconds: Annotated[int, Field(ge=1, le=10_000)] = 150
    """CPU time limit of the scorer for one pod, including parsing. A pod that needs more, such as one with thousands of
    terms or labels, gets the verdict Unknown; it is still patched."""

    max_view_age_seconds: Seconds = 60
    """Maximum age of the view of a live cluster, measured from the last time that it was known to be current. With an
    older view, for example while the API server is unavailable, every verdict is Unknown. In a quiet cluster the age
    is up to 36 seconds and at most 0.6 of this value: a value below 60 leads to more frequent requests to the API
    server. With the value 1 the age can be slightly higher."""


class PolicySpec(StrictModel):
    """The settings of the policy. Every field has a default; `spec: {}` is the built-in policy."""

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
    """The values of the annotation `workload-type`. A policy that sets this field must list all its types."""

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
    """The vendors. The accelerator of a pod is the first one whose resource the pod requests, or the first of the list
    if it requests none."""

    product_affinity: bool = True
    """Require the product label of the node, too, for `gpu-product`. A toleration only permits a node; affinity
    selects it. Set this to `false` if nodes are separated by taints alone."""

    allowed_products: dict[ProductPattern, Values[NamespacePattern]] = Field(default={})
    """Namespaces whose pods may request a restricted product with `gpu-product`, by product. Products and namespaces
    are names or patterns with `*`. If several entries match a product, one entry that allows the namespace is enough.
    A product without a matching entry is allowed in every namespace."""

    bin_packing: BinPacking = BinPacking()
    """Settings of bin-packing for pods of types with `binPacking: true`."""

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
    """Schedulers that the annotation `scheduler` can choose. Must include the `schedulerName` of each workload type."""

    opt_out_namespaces: Values[NamespacePattern] | None = None
    """Namespaces whose pods may opt out with `inject: disabled`, each a name or a pattern with `*`. In other namespaces
    the annotation has no effect and leads to a warning. If absent: every namespace, or none if `placementCheck.floor`
    is `deny`."""

    placement_check: PlacementCheck = PlacementCheck()
    """The placement check at admission."""

    node_templates: Annotated[tuple[NodeTemplate, ...], Field(strict=False)] = ()
    """The nodes that an autoscaler can add. If no node of the cluster could ever run a pod, but an empty node of a
    template could, the verdict is Waiting instead of Infeasible."""

    invalid_annotations: Literal["deny", "warn"] = "deny"
    """The handling of a pod with an invalid annotation: deny it, or admit it with a warning and ignore the annotation
    (an invalid workload type: without any injection)."""

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
    """Name of the policy, which the annotation `placement-policy` of every mutated pod includes."""

    labels: dict[str, str] = Field(default={})
    """Ignored."""

    annotations: dict[str, str] = Field(default={})
    """Ignored."""


class PolicyDocument(StrictModel):
    """A PlacementPolicy in a file."""

    api_version: Literal["placement.maip.mxsf.io/v1alpha1"]
    """`placement.maip.mxsf.io/v1alpha1`"""

    kind: Literal["PlacementPolicy"]
    """`PlacementPolicy`"""

    metadata: Metadata = Metadata()
    """The policy's identity."""

    spec: PolicySpec = PolicySpec()
    """The settings of the policy."""
