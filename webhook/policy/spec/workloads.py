"""Settings of workloads: types, tolerations, QoS, kinds of objects."""

import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from webhook.kube.names import DAEMON_SET, is_dns_subdomain
from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath
from webhook.kube.workloads.pod_template_path import WorkloadKind as Kind
from webhook.policy.spec.field_types import (
    LabelKey,
    LabelText,
    LabelValue,
    NamespacePattern,
    SomeValues,
    StrictModel,
    Subdomain,
    TolerationSeconds,
    Values,
    Weight,
    checked,
    wrong,
)
from webhook.policy.spec.schedulers import Spread, WithinDefault


class Qos(StrictModel):
    """The QoS class that pods of a type must have.

    A pod is Guaranteed if each of its containers, init containers and sidecars included, has limits of cpu and memory
    and requests equal to them; or if the pod as a whole has both (`spec.resources`).
    """

    class_: Literal["Guaranteed"] | None = Field(default=None, alias="class")
    """`Guaranteed`: missing requests are set to the limits. If absent, resources are not changed."""

    limits_from_requests: bool = False
    """Set missing limits to the requests, too. A limit of memory ends a container that uses more, and one of cpu slows
    it down."""

    whole_cpus: bool = False
    """Ask for a whole number of CPUs in each container beside init containers and sidecars, as the static policy of the
    CPU manager needs for exclusive CPUs."""

    on_missing: Literal["warn", "deny"] = "warn"
    """The handling of a pod that lacks a limit or has a smaller request: admit it with a warning for each, or deny it.
    With `invalidAnnotations: warn`, such a pod is not denied but gets no injection."""


class ExtraToleration(StrictModel):
    """One toleration, with the fields of `tolerations` in a pod."""

    key: LabelKey
    """The key of the taint. Never `KEY-DOMAIN/control-plane`."""

    operator: Literal["Equal", "Exists"] = "Equal"
    """`Exists` tolerates every value of the taint."""

    value: LabelText = ""
    """The value of the taint, for `Equal`."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The effect of the taint. If absent: every effect."""

    toleration_seconds: TolerationSeconds | None = None
    """The time in seconds that the pod stays on a node with the taint, only for `NoExecute`. If absent: without limit.
    If the pod has a toleration of the same taint itself, its time counts."""

    @model_validator(mode="after")
    def _api_server_accepts_it(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise wrong("value must be absent with operator Exists")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise wrong("tolerationSeconds needs effect NoExecute")
        return self


Handling = Literal["inject", "warn", "leave"]


class WithoutAccelerator(StrictModel):
    """The handling of pods that request no accelerator.

    A pod with `resourceClaims` counts as one that requests an accelerator, because a claim can be for one.
    """

    pod_annotations: Handling = "warn"
    """Pods that set the workload type themselves. `inject`: inject as for every other pod. `warn`: the same, and warn a
    pod that asks for a card with `gpu-product` or another `gpu-` annotation. `leave`: inject nothing, and warn."""

    namespace_defaults: Handling = "leave"
    """The annotations of the pod's namespace. `inject`: they apply to every pod. `warn`: the same, and warn the pod.
    `leave`: they apply only to pods that request an accelerator. `inject` and `placement-check` always apply."""


def _both(value: Any) -> Any:
    if isinstance(value, str) and value in get_args(Handling):
        return {"podAnnotations": value, "namespaceDefaults": value}
    if not isinstance(value, dict | WithoutAccelerator):
        raise wrong("must be inject, warn or leave, or a mapping with podAnnotations and namespaceDefaults")
    return value


class _WordInSchema:
    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "enum": list(get_args(Handling))}]}


# One word sets both fields.
WithoutAcceleratorField = Annotated[WithoutAccelerator, BeforeValidator(_both), _WordInSchema]


class NodeUsage(StrictModel):
    """The node pools that pods of a type may use, by their `KEY-DOMAIN/node.usage` label and taint."""

    allow: SomeValues[LabelValue]
    """Values of the `node.usage` label. The pod must run on a node with one of them (required node affinity) and
    tolerates the `NoSchedule` taint of each."""

    prefer: dict[LabelValue, Weight] = Field(default={})
    """Weights, 1 to 100, of the values that pods of this type prefer (preferred node affinity). Each value must also be
    in `allow`."""

    @property
    def preferences(self) -> list[tuple[str, int]]:
        """The values with their weights, sorted: the order of keys in the policy must not change its revision."""
        return sorted(self.prefer.items(), key=lambda item: (-item[1], item[0]))


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

    within: WithinDefault = WithinDefault()
    """The rule that keeps the pods of a gang together."""

    qos: Qos = Qos()
    """The QoS class of pods of this type."""

    allowed_namespaces: Values[NamespacePattern] = ("*",)
    """Namespaces whose pods may use this type, each a name or a pattern with `*`. A type adds tolerations, and
    tolerations are a privilege."""

    extra_tolerations: Values[ExtraToleration] = ()
    """Tolerations of pods of this type, for taints beside the node pools', such as those of spot nodes."""


_PATH = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.([A-Za-z0-9_-]+|\*)){0,15}")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_RESOURCE = re.compile(r"[a-z][a-z0-9]{0,62}")


FieldPath = Annotated[
    str,
    checked(
        lambda text: _PATH.fullmatch(text) is not None and text.count("*") <= 3,
        "must be a dotted path like spec.tasks.*.template, with * for each item of a list or value of a map",
    ),
]


class PodTemplateOfKind(StrictModel):
    """A path of pod templates in the objects of a kind."""

    path: FieldPath
    """The path of the PodTemplateSpec. `*` stands for each item of a list or each value of a map."""

    replicas: FieldPath | None = None
    """The path of the number of pods, with the same `*`. One pod if it, or the value there, is absent."""

    times: FieldPath | None = None
    """The path of a second number by which `replicas` is multiplied, such as the number of groups of such pods."""

    pod_spec: bool = False
    """The path is that of a PodSpec, not of a PodTemplateSpec."""

    annotations: FieldPath | None = None
    """The path of the annotations of the pods of a PodSpec, with the same `*`. If absent, they have none of their
    own."""

    role: LabelValue | None = None
    """The name of these pods in messages. Default: the key or the `name` of the item that the last `*` stands for."""

    @field_validator("replicas", "times", "annotations")
    @classmethod
    def _belongs_to_its_own_template(cls, path: str | None, info: ValidationInfo) -> str | None:
        stem = path[: path.rindex("*") + 1] if path and "*" in path else ""
        if not str(info.data.get("path", stem)).startswith(stem):
            raise wrong("must have its * where path has them")
        return path

    @model_validator(mode="after")
    def _has_one_place_for_annotations(self) -> Self:
        if self.annotations is not None and not self.pod_spec:
            raise wrong("must have annotations only with podSpec: true; a PodTemplateSpec has its own")
        return self


class WorkloadKind(StrictModel):
    """A kind of object that creates pods from templates, or one that creates no pods."""

    group: Annotated[
        str,
        checked(
            lambda text: not text or is_dns_subdomain(text),
            "must be an API group like batch.volcano.sh, or empty for the core group",
        ),
    ]
    """Its API group, without a version, or empty for the core group."""

    kind: Annotated[str, checked(_KIND.fullmatch, "must be a kind like PyTorchJob")]
    """Its kind."""

    resource: Annotated[
        str, checked(_RESOURCE.fullmatch, "must be the plural of the kind in lower case, like pytorchjobs")
    ]
    """Its plural in lower case, for the rules of the webhook configuration."""

    templates: Values[PodTemplateOfKind]
    """Its pod templates; an empty list for a kind that creates no pods."""

    def facts(self) -> Kind:
        """Return the kind in the form of the built-in kinds."""
        templates = tuple(_facts(each) for each in self.templates)
        return Kind(self.group, self.kind, self.resource, templates, is_per_node=self.kind == DAEMON_SET)


def _facts(template: PodTemplateOfKind) -> PodTemplatePath:
    name = "{name}-{role}-" if template.role or "*" in template.path else "{name}-"
    paths = [path for path in (template.times, template.replicas) if path] or [""]
    return PodTemplatePath(
        template.path,
        tuple(map(Count, paths)),
        template.role or "",
        name,
        annotations=template.annotations or "",
        shape="PodSpec" if template.pod_spec else "PodTemplate",
    )
