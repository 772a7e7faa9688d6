"""Workload types: the values of the annotation `workload-type`, and their node pools."""

from pydantic import Field

from webhook.policy.extra_toleration import ExtraToleration
from webhook.policy.fields import LabelValue, NamespacePattern, SomeValues, StrictModel, Subdomain, Values, Weight
from webhook.policy.qos import Qos
from webhook.policy.spread import Spread


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

    priority_class_name: Subdomain | None = None
    """The PriorityClass of pods that name none; the API server sets `priority` and `preemptionPolicy` by it. If absent,
    the class is not changed. The class must exist: the API server refuses pods whose class does not."""

    bin_packing: bool = False
    """Let pods of this type prefer nodes that already run packed pods."""

    spread: Spread = Spread()
    """The rule that keeps the replicas of one owner apart."""

    qos: Qos = Qos()
    """The QoS class of pods of this type."""

    allowed_namespaces: Values[NamespacePattern] = ("*",)
    """Namespaces whose pods may use this type, each a name or a pattern with `*`. A type adds tolerations, and
    tolerations are a privilege."""

    extra_tolerations: Values[ExtraToleration] = ()
    """Tolerations of pods of this type, for taints beside the node pools', such as those of spot nodes."""
