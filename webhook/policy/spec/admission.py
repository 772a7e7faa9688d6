"""Settings of admission: exemptions, limits of namespaces, the placement check, workload objects."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from webhook.kube import selectors as label_selector
from webhook.policy.spec.field_types import (
    Items,
    LabelKey,
    LabelText,
    LabelValue,
    NamespacePattern,
    ProductPattern,
    QueuePattern,
    Seconds,
    ServiceAccountPattern,
    SomeValues,
    StrictModel,
    Text,
    UserPattern,
    Values,
    wrong,
)


class LabelRequirement(StrictModel):
    """A requirement on one label, as in a LabelSelector."""

    key: LabelKey
    """The label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """`In` and `NotIn` need `values`; `Exists` and `DoesNotExist` have none."""

    values: Values[LabelText] = ()
    """The values of `In` and `NotIn`."""

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> "LabelRequirement":
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise wrong("must have values with In and NotIn, and none with Exists and DoesNotExist")
        return self


class LabelSelector(StrictModel):
    """A LabelSelector. All of its requirements must hold; an empty one selects everything."""

    match_labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels with their values."""

    match_expressions: Items[LabelRequirement] = ()
    """Requirements on labels."""

    @property
    def keys(self) -> set[str]:
        """The label keys that the selector reads."""
        return {each.key for each in self.requirements}

    @cached_property
    def requirements(self) -> label_selector.LabelSelector:
        """The requirements as `selector_matches` takes them."""
        expressions = (
            label_selector.LabelRequirement(each.key, each.operator, each.values) for each in self.match_expressions
        )
        return (*label_selector.exact_selector(self.match_labels), *expressions)


class NamespaceSelector(LabelSelector):
    """A LabelSelector for namespaces. All of its requirements must hold; an empty one selects every namespace."""


class PodLabels(LabelSelector):
    """A LabelSelector for pods. All of its requirements must hold."""

    @model_validator(mode="after")
    def _selects_something(self) -> "PodLabels":
        if not self.match_labels and not self.match_expressions:
            raise wrong("must have matchLabels or matchExpressions: an empty selector would exempt every pod")
        return self


class Exemption(StrictModel):
    """Requests that the policy leaves alone: they are allowed unchanged (outcome Bypassed), with the reason on record.

    Every field that is set must match, and one value of each list is enough. `users`, `groups` and `serviceAccounts`
    are those of the request. The pods of a Deployment or Job are created by a controller of Kubernetes, so they are not
    exempted by the user who created that object: exempt them by `namespaces` or `podLabels`.
    """

    users: SomeValues[UserPattern] | None = None
    """The users, each a name or a pattern with `*`, such as `system:serviceaccount:ci:*`."""

    groups: SomeValues[UserPattern] | None = None
    """The groups of the user, each a name or a pattern with `*`."""

    service_accounts: SomeValues[ServiceAccountPattern] | None = None
    """The service accounts that create the object, each `NAMESPACE:NAME` or a pattern with `*`, such as `ci:*`; with or
    without `system:serviceaccount:` in front."""

    namespaces: SomeValues[NamespacePattern] | None = None
    """The namespaces of the object, each a name or a pattern with `*`."""

    pod_labels: PodLabels | None = None
    """The labels of the pod. An entry with this field holds for pods, and for the pod templates of workload objects
    unless it names users, groups or service accounts, too."""

    reason: Text
    """The reason, for the audit record: at most 256 characters."""

    @model_validator(mode="after")
    def _names_something(self) -> "Exemption":
        if not self.concerns_users and self.namespaces is None and self.pod_labels is None:
            raise wrong("must have users, groups, serviceAccounts, namespaces or podLabels")
        return self

    @property
    def concerns_users(self) -> bool:
        """Return whether the entry depends on who sends the request."""
        return self.users is not None or self.groups is not None or self.service_accounts is not None


class Reclaim(StrictModel):
    """Settings of `placement-webhook reclaim --evict`."""

    namespaces: Values[NamespacePattern] = ()
    """The namespaces whose pods it may evict, each a name or a pattern with `*`. By default none."""


class NamespaceLimits(StrictModel):
    """The limits of the pods of some namespaces; a field that is absent sets no limit.

    The limits hold for pods with a workload type, beside `allowedNamespaces` of the types and `allowedProducts`: what
    one of them forbids is forbidden.
    """

    namespaces: SomeValues[NamespacePattern]
    """The namespaces, each a name or a pattern with `*`. The first entry of the list with a pattern that matches holds
    for a namespace, and no other."""

    workload_types: Values[LabelValue] | None = None
    """The workload types that they may use."""

    products: Values[ProductPattern] | None = None
    """The products that they may use, each a name or a pattern with `*`; a product includes its variants. Pods that
    name no product are restricted to these: see docs/annotations.md."""

    schedulers: Values[LabelValue] | None = None
    """The schedulers that they may use, by annotation or by `spec.schedulerName`. `default-scheduler` is always
    allowed. Must include the `schedulerName` of each workload type that they may use."""

    queues: Values[QueuePattern] | None = None
    """The queues that they may use, each a name or a pattern with `*`. The limit also holds for PodGroups of Volcano
    and KAI, and Workloads of Kueue. A queue that is used by default is always allowed."""

    max_cards_per_pod: Annotated[int, Field(ge=0, le=1024)] | None = None
    """The largest number of cards of one pod: the sum of its requests for the `resources` of `accelerators`, and of
    cards by other names: see docs/annotations.md. Cards of `resourceClaims` do not count."""


CheckMode = Literal["off", "warn", "deny"]
ScorerProfile = Literal["default", "binpack", "pack-gpus"]


class PlacementCheck(StrictModel):
    """The placement check at admission: whether the scorer looks for a feasible node, and what its verdict leads to."""

    mode: CheckMode = "warn"
    """`off`: no check. `warn`: if no node can run the pod now, the user gets the scorer's message as a warning. `deny`:
    a pod that no node could ever run (verdict Infeasible, never Waiting or Unknown) is denied, unless an exemption
    applies: see docs/scorer.md."""

    floor: CheckMode = "off"
    """The least strict mode that the annotation `placement-check` can choose."""

    profile: ScorerProfile = "default"
    """The scheduler profile that is predicted: kube-scheduler's default, `binpack` (MostAllocated), or `pack-gpus`
    (least fragmentation of GPUs), for a kube-scheduler with the scheduler extender: see docs/extender.md."""

    work_budget_milliseconds: Annotated[int, Field(ge=1, le=10_000)] = 150
    """CPU time limit of the scorer for one pod, including parsing. A pod that needs more, such as one with thousands of
    terms or labels, gets the verdict Unknown; it is still patched."""

    max_view_age_seconds: Seconds = 60
    """Maximum age of the view of a live cluster, measured from the last time that it was known to be current. With an
    older view, for example while the API server is unavailable, every verdict is Unknown. In a quiet cluster the age
    is up to 36 seconds and at most 0.6 of this value: a value below 60 leads to more frequent requests to the API
    server. With the value 1 the age can be slightly higher."""

    reservation_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """The time for which the room of an admitted pod stays reserved until the pod is seen in the cluster; with a live
    view, at most 5 seconds. Seen pods keep it until they are bound, deleted, gated or found unschedulable; pods
    of a scheduler that shows no sign of running have none. A pod that the API server refuses after the webhook, for
    example because of a quota, is never seen."""


class WorkloadObjects(StrictModel):
    """The admission of objects that create pods, such as Deployments, which are patched only with `mutateTemplates`.

    Their pod templates are evaluated as their pods will be, and the user gets the result when the object is applied.
    """

    enabled: bool = True
    """Evaluate workload objects. With `false` they are allowed without evaluation; their pods are evaluated anyway."""

    report: Literal["problems", "always"] = "problems"
    """When the user gets the verdict as a warning: if a pod does not fit, or also if all pods fit. A warning without a
    problem makes `kubectl --warnings-as-errors` fail."""

    invalid_annotations: Literal["deny", "warn"] | None = None
    """The handling of a workload object with an invalid annotation on a pod template: deny it, or allow it with a
    warning. If absent: the value of `spec.invalidAnnotations`."""

    mutate_templates: bool = False
    """Also inject into the pod templates of the object, so that autoscalers and queues plan with the constraints of the
    pods. Their pods are then created as they are admitted. Only for the kinds in docs/workloads.md."""
