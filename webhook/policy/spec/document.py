"""The PlacementPolicy document. Docstrings of fields are the texts of docs/policy.md and the JSON schema."""

from operator import attrgetter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from webhook.kube import names as wellknown
from webhook.kube.pod.taints import TEMPORARY_TAINTS
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS, Accelerator
from webhook.policy.spec.admission import (
    Exemption,
    NamespaceLimits,
    NamespaceSelector,
    PlacementCheck,
    Reclaim,
    WorkloadObjects,
)
from webhook.policy.spec.cases import PolicyTest
from webhook.policy.spec.field_types import (
    Items,
    KeyDomain,
    LabelKey,
    LabelValue,
    NamespacePattern,
    Percent,
    Priority,
    ProductPattern,
    ProductSuffix,
    SomeValues,
    StrictModel,
    Subdomain,
    TaintKey,
    Values,
    WholePercent,
    checked,
)
from webhook.policy.spec.schedulers import BinPacking, NodeTemplate, PackGpus, SchedulerSettings, Spread
from webhook.policy.spec.workloads import (
    NodeUsage,
    WithoutAccelerator,
    WithoutAcceleratorField,
    WorkloadKind,
    WorkloadType,
)

GROUP = "placement.maip.mxsf.io"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "PlacementPolicy"


# Each product adds a toleration for each of its variants.
_MOST_VARIANTS = 10
# Each exemption is looked at for every pod, each test case runs at every reload.
_MOST_ENTRIES = 100


_FEW = checked(lambda entries: len(entries) <= _MOST_ENTRIES, f"must hold at most {_MOST_ENTRIES} entries")


def _distinct(detail: str, *fields: str) -> AfterValidator:
    """Return the validator of a list in which no two objects are equal in all of `fields`."""
    return checked(lambda values: len(set(map(attrgetter(*fields), values))) == len(values), detail)


class PolicySpec(StrictModel):
    """The settings of the policy. Every field has a default; `spec: {}` is the built-in policy."""

    key_domain: KeyDomain = "maip.mxsf.io"
    """The domain of every annotation, of the `node.usage` label and taint."""

    former_key_domains: Values[KeyDomain] = ()
    """Domains that annotations had before. A pod or object with an annotation of one gets a warning with the key that
    has an effect."""

    workload_types: Annotated[dict[LabelValue, WorkloadType], checked(bool, "must hold at least one workload type")] = (
        Field(
            default={
                "training": WorkloadType(
                    node_usage=NodeUsage(allow=("training", "hybrid"), prefer={"training": 100}),
                    scheduler_name="volcano",
                    bin_packing=True,
                ),
                "inference": WorkloadType(
                    node_usage=NodeUsage(allow=("inference", "hybrid"), prefer={"inference": 100}),
                    spread=Spread(topology=wellknown.HOSTNAME_LABEL),
                ),
            }
        )
    )
    """The values of the annotation `workload-type`. A policy that sets this field must list all its types."""

    accelerators: Annotated[
        SomeValues[Accelerator], _distinct("each accelerator must have a name of its own", "name")
    ] = BUILT_IN_ACCELERATORS
    """The vendors. The accelerator of a pod is the first one whose resource the pod requests, or the first of the list
    if it requests none."""

    product_affinity: bool = True
    """Require the product label of the node, too, for `gpu-product`. A toleration only permits a node; affinity
    selects it. Set this to `false` if nodes are separated only by taints."""

    tolerate_any_product: bool = True
    """Tolerate the product taint of every card (`CARD.product Exists NoSchedule`) if a pod requests an accelerator and
    names no product: any product that `allowedProducts` allows will do. With `false`, such a pod runs on nodes without
    a product taint only."""

    product_variants: Annotated[
        Values[ProductSuffix],
        checked(lambda suffixes: len(suffixes) <= _MOST_VARIANTS, f"must hold at most {_MOST_VARIANTS} suffixes"),
    ] = ()
    """Suffixes of products that are accepted with the product: with `-SHARED`, `gpu-product: NVIDIA-H20` accepts
    `NVIDIA-H20-SHARED`, too. A restriction in `allowedProducts` on a product also holds for its variants. At most 10
    suffixes. See docs/annotations.md for the variants that GPU Feature Discovery reports."""

    gpu_memory_tolerance_percent: Percent = 5
    """The percentage by which the memory that a node reports may be below `gpu-memory`, 0 to 50. Cards report less
    than the size that they are sold by."""

    without_accelerator: WithoutAcceleratorField = WithoutAccelerator()
    """The handling of pods that request no accelerator. One word sets both fields: `withoutAccelerator: inject`."""

    require_type: LabelValue | None = None
    """The handling of pods that request an accelerator and have no workload type, not even from their namespace.
    `warn`: a warning. `deny`: they are denied, or warned with `invalidAnnotations: warn`. A workload type: they have
    that type. If absent: they are left alone. Claims for devices do not count."""

    allowed_products: dict[ProductPattern, Values[NamespacePattern]] = Field(default={})
    """Namespaces whose pods may request a restricted product with `gpu-product`, by product. Products and namespaces
    are names or patterns with `*`. If several entries match a product, one entry that allows the namespace is enough.
    A product without a matching entry is allowed in every namespace. A restriction also holds for pods that name no
    product: see docs/annotations.md."""

    namespace_limits: Items[NamespaceLimits] = ()
    """Limits of the workload types, products, schedulers, queues and cards of a pod, by namespace. A pod beyond them is
    denied with 403. Without an entry for its namespace, a pod has no limits but `allowedNamespaces` and
    `allowedProducts`."""

    bin_packing: BinPacking = BinPacking()
    """Settings of bin-packing for pods of types with `binPacking: true`."""

    topology_aliases: dict[LabelValue, LabelKey] = Field(
        default={
            "host": wellknown.HOSTNAME_LABEL,
            "rack": "topology.kubernetes.io/rack",
            "nvlink": "nvidia.com/gpu.clique",
            "zone": wellknown.ZONE_LABEL,
        }
    )
    """Short names of topology keys for the annotations `spread` and `within`, for `topology` of the workload types and
    for `tiers` of the schedulers."""

    allowed_schedulers: Values[LabelValue] = (
        wellknown.DEFAULT_SCHEDULER,
        "volcano",
        "kai-scheduler",
        "binpack-scheduler",
    )
    """Schedulers that the annotation `scheduler` can choose. Must include the `schedulerName` of each workload type."""

    schedulers: dict[LabelValue, SchedulerSettings] = Field(default={})
    """The kinds of the schedulers, by their name. A scheduler that is absent here is a profile of kube-scheduler,
    except for `volcano` and `kai-scheduler`, whose backends are `volcano` and `kai`."""

    queueing: Literal["scheduler", "kueue"] = "scheduler"
    """The reader of the annotations `queue` and `gang`: the scheduler of the pod, or Kueue, which admits pods before
    any scheduler sees them."""
    default_priority_class: Subdomain | None = None
    """The PriorityClass with `globalDefault` of the cluster, if it has one. The API server gives it to every pod that
    names no class, before the webhook sees the pod. With this field, a pod with that class counts as one that names
    none, so it gets the `priorityClassName` of its workload type."""

    opt_out_namespaces: Values[NamespacePattern] | None = None
    """Namespaces whose pods may opt out with `inject: disabled`, each a name or a pattern with `*`. In other namespaces
    the annotation has no effect and leads to a warning. If absent: every namespace, or none if `placementCheck.floor`
    is `deny`."""

    placement_check: PlacementCheck = PlacementCheck()
    """The placement check at admission."""

    pack_gpus: PackGpus = PackGpus()
    """Settings of the scheduler profile `pack-gpus`."""

    node_templates: Annotated[
        Items[NodeTemplate], _distinct("each node template must have a name of its own", "name")
    ] = ()
    """The nodes that an autoscaler can add. If no node of the cluster could ever run a pod, but an empty node of a
    template could, the verdict is Waiting instead of Infeasible."""

    reclaim: Reclaim = Reclaim()
    """Settings of `placement-webhook reclaim`, which reports cards that are held and not used. It has no effect on
    admission, and does not change the revision. See docs/reclaim.md."""

    temporary_taints: Annotated[Values[TaintKey], _FEW] = TEMPORARY_TAINTS
    """Keys of taints for a state of a node that passes, beside those of Kubernetes (`node.kubernetes.io/…`): the node
    starts, is upgraded or is deleted. `example.com/` stands for all keys of that domain. At most 100 keys; a policy
    that sets this field must list all of them. A pod that only such taints keep off a node is not denied, no suggestion
    tolerates them, and the cards of such a node are not free."""

    workload_kinds: Annotated[
        Items[WorkloadKind], _distinct("must hold each kind of a group once", "group", "kind")
    ] = ()
    """Kinds that create pods, beside the built-in ones; an entry replaces the built-in kind of its group and name."""

    invalid_annotations: Literal["deny", "warn"] = "deny"
    """The handling of a pod with an invalid annotation: deny it, or admit it with a warning and ignore the annotation
    (an invalid workload type: without any injection). A Namespace with an invalid annotation is denied, or allowed with
    a warning, likewise."""

    workload_objects: WorkloadObjects = WorkloadObjects()
    """Settings of the admission of objects that create pods."""

    namespace_selector: NamespaceSelector | None = None
    """The namespaces that one of several policies is in force for, see "Several policies". The default policy has none;
    it is for the namespaces that no other policy selects. It has no effect in a file with one policy, and does not
    change the revision."""

    priority: Priority = 0
    """The order of the policies that select the same namespace: the one with the highest priority is in force; of equal
    ones, the first by name. -1000000 to 1000000. It has no effect in a file with one policy, and does not change the
    revision."""

    unknown_namespace: Literal["default", "leave", "deny"] = "default"
    """The handling of pods in a namespace whose labels the server does not know yet, while policies select namespaces
    by labels: `default` applies the default policy, `leave` admits the pod unchanged, `deny` denies it until the
    labels are known. Only that of the default policy counts. It does not change the revision."""

    missing_policy: Literal["default", "deny"] = "default"
    """The handling of pods in the namespaces that a PlacementPolicy object selects if it is rejected and no generation
    of it was ever valid: `default` applies the next policy that selects the namespace, `deny` denies them. Only that
    of the default policy counts. It does not change the revision."""

    exemptions: Annotated[Items[Exemption], _FEW] = ()
    """Requests and pods that the policy leaves alone, at most 100 entries. The first one that matches is on record."""

    mode: Literal["enforce", "shadow"] = "enforce"
    """`enforce`: pods are patched and denied. `shadow`: nothing is patched, denied or warned of; every decision is
    computed, counted and on record as it would have been. See docs/operations.md."""

    canary_percent: WholePercent = 100
    """With `mode: enforce`, the percentage of the owners of pods for which the policy is enforced; for the others it is
    in shadow mode. All pods of one owner, or of one `gang`, are treated alike. Below 100, other objects than pods are
    in shadow mode. See docs/operations.md for the hash."""

    tests: Annotated[Items[PolicyTest], _FEW, _distinct("each test case must have a name of its own", "name")] = ()
    """Test cases, at most 100. A policy with a case that fails is not valid, so that it never gets into force. They do
    not change the revision. `placement-webhook policy test` runs them."""

    def named_schedulers(self) -> dict[str, str]:
        """Return the schedulers that the policy names, by field, without those in the default of `allowedSchedulers`.

        A list that is explicitly set to the default is also left out, because a replica prints its policy with all
        defaults.
        """
        types = self.workload_types.items()
        fields = {f"workloadTypes.{name}.schedulerName": each.scheduler_name or "" for name, each in types}
        if self.allowed_schedulers != type(self).model_fields["allowed_schedulers"].default:
            fields |= {f"allowedSchedulers[{index}]": name for index, name in enumerate(self.allowed_schedulers)}
        return {field: name for field, name in fields.items() if name}


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
