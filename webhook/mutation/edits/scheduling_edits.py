"""Edits of queues, priority, resources and spreading. The invariants of edits are in `webhook.mutation.edits.edits`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from webhook.backends.backend import PodField
from webhook.documents.documents import JsonObject
from webhook.documents.text import cut
from webhook.kube.selectors import requirement_matches
from webhook.mutation.edits.editor import Path, PodEditor
from webhook.mutation.edits.edits import CHANGED, KEPT, PREFERRED, Effect, PreferPodAffinity
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.replica_group import ReplicaGroup

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CONSTRAINTS: Path = ("spec", "topologySpreadConstraints")
WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
_ANTI_AFFINITY: Path = ("spec", "affinity", "podAntiAffinity")
_AFFINITY: Path = ("spec", "affinity", "podAffinity")
# kube-scheduler counts a running pod only if it matches all required terms, and lets the first pod of a gang start only
# if that pod matches them all itself: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
_OF_OTHERS = "required podAffinity to other pods (with both, no first pod of the gang could start)"


@dataclass(frozen=True, slots=True)
class SetField:
    """Set a text field of the pod, unless the user or a controller set another value."""

    field: PodField

    def __str__(self) -> str:
        return str(self.field)

    def apply(self, pod: PodEditor) -> Effect:
        """Set the field if it is missing."""
        present = pod.get(*self.field.path)
        if present is None:
            pod.set(self.field.value, *self.field.path)
            return CHANGED
        if present == self.field.value:
            return KEPT
        kept = str(self.field._replace(value=cut(str(present), LONGEST_SHOWN)))
        return Effect(changed=False, warnings=(f"{kept} of the pod wins over {self.field.value}",), kept_value=kept)


@dataclass(frozen=True, slots=True)
class SetPriorityClass:
    """Set the PriorityClass `name`, if the pod has none or the cluster's `default_class`.

    The admission plugin Priority runs before webhooks and again after them. The first time, it sets `priority` and
    `preemptionPolicy` to the values of the class that it finds. The second time, it denies a pod whose values differ
    from those of its class. So the edit removes both values, and the plugin sets them again.

    Source: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go, admitPod and getDefaultPriority
    """

    name: str
    default_class: str | None

    def __str__(self) -> str:
        return f"priority class {self.name}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the class and remove the values of the default class, unless the user chose a class or values."""
        present = pod.get("spec", "priorityClassName") or ""
        if present == self.name:
            return KEPT
        if present and present != self.default_class:
            return Effect(changed=False, kept_value=f"priorityClassName {cut(present, LONGEST_SHOWN)}")
        if not present and (own := _own_value(pod)):
            return Effect(changed=False, kept_value=own)
        pod.remove("spec", "priority")
        pod.remove("spec", "preemptionPolicy")
        pod.set(self.name, "spec", "priorityClassName")
        return CHANGED


def _own_value(pod: PodEditor) -> str:
    """Return the priority or preemption policy that the user set in a pod without a class, or "".

    The API server denies a pod with such a value.
    """
    if (priority := pod.get("spec", "priority")) not in (None, 0):
        return f"priority {cut(str(priority), LONGEST_SHOWN)}"
    if (preemption := pod.get("spec", "preemptionPolicy")) not in (None, "", PREEMPT_LOWER_PRIORITY):
        return f"preemptionPolicy {cut(str(preemption), LONGEST_SHOWN)}"
    return ""


@dataclass(frozen=True, slots=True)
class SetAmount:
    """Set the request or limit at `path` to `value`, unless it is already set."""

    path: Path
    value: Any

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"set {place[1:]}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the amount if it is missing."""
        if pod.get(*self.path) is not None:
            return KEPT
        pod.set(self.value, *self.path)
        return CHANGED


@dataclass(frozen=True, slots=True)
class _OfGroup(ABC):
    """Place the pods of `group` by the domains of `topology_key`, unless the user has configured this.

    `hint` is the packing hint of the policy, which does not count as the user's. `is_requested` is true if the pod's
    `annotation` requests the edit, so that there is a warning if nothing is added.
    """

    annotation: ClassVar[str]
    topology_key: str
    group: ReplicaGroup
    hint: PreferPodAffinity
    is_requested: bool

    @property
    def _selector(self) -> JsonObject:
        return {"matchLabels": {self.group.key: self.group.value}}

    @abstractmethod
    def _own(self, pod: PodEditor) -> str:
        """Return the configuration of the user that counts instead, such as `podAffinity over rack`, or ""."""

    def _over(self, own: str) -> str:
        return own and f"{own} over {self.topology_key}"

    def _added(self, pod: PodEditor, item: JsonObject, path: Path, *, is_present: bool) -> Effect:
        """Append `item`. Also add the label of the group if the webhook defines it."""
        if not is_present:
            if own := self._own(pod):
                return self._kept(own)
            pod.append(item, *path)
        if self.group.is_added and pod.get("metadata", "labels", self.group.key) is None:
            pod.set(self.group.value, "metadata", "labels", self.group.key)
            return CHANGED
        return KEPT if is_present else CHANGED

    def _added_term(self, pod: PodEditor, path: Path, weight: int | None) -> Effect:
        term = {"labelSelector": self._selector, "topologyKey": self.topology_key}
        if weight is None:
            path = (*path, REQUIRED)
            return self._added(pod, term, path, is_present=term in (pod.get(*path) or ()))
        path = (*path, PREFERRED)
        is_present = any(each.get("podAffinityTerm") == term for each in pod.get(*path) or ())
        return self._added(pod, {"weight": weight, "podAffinityTerm": term}, path, is_present=is_present)

    def _kept(self, kept_value: str) -> Effect:
        warning = f"spec: {kept_value} of the pod wins over its annotation {self.annotation}, which adds nothing"
        return Effect(changed=False, warnings=(warning,) if self.is_requested else (), kept_value=kept_value)

    def _selects(self, pod: PodEditor, term: Mapping[str, Any]) -> bool:
        """Return whether a `term` of the user, over the topology key, selects the pod itself."""
        if term.get("topologyKey") != self.topology_key or self.hint.is_same(term):
            return False
        return self._matches(pod, term)

    def _matches(self, pod: PodEditor, term: Mapping[str, Any]) -> bool:
        selector, labels = term.get("labelSelector"), pod.get("metadata", "labels") or {}
        if selector is None:
            return False
        exact: Mapping[str, str] = selector.get("matchLabels") or {}
        return all(labels.get(key) == value for key, value in exact.items()) and all(
            requirement_matches(each, labels) for each in selector.get("matchExpressions") or ()
        )


@dataclass(frozen=True, slots=True)
class _Spread(_OfGroup):
    """Spread the pods of the group over the domains of the topology key.

    These count as the user's configuration: a spread constraint or pod anti-affinity over the key, or pod affinity over
    the key for pods like this one.
    """

    annotation = "spread"

    def _own(self, pod: PodEditor) -> str:
        anti_affinity = _terms(pod, _ANTI_AFFINITY)
        if any(each.get("topologyKey") == self.topology_key for each in pod.get(*CONSTRAINTS) or ()):
            return self._over("topologySpreadConstraints")
        if any(each.get("topologyKey") == self.topology_key for each in anti_affinity):
            return self._over("podAntiAffinity")
        return self._over("podAffinity" if any(self._selects(pod, each) for each in _terms(pod, _AFFINITY)) else "")


@dataclass(frozen=True, slots=True)
class GatherByAffinity(_OfGroup):
    """Add podAffinity for the group, so that one domain of the topology key runs all of its pods.

    It is required, or preferred with `weight`. These count as the user's configuration: pod affinity over the key for
    pods like this one, and required pod anti-affinity or a DoNotSchedule constraint over it, which keep them apart. So
    does, beside a required term, required pod affinity over any key for other pods.
    """

    annotation = "within"
    weight: int | None

    def __str__(self) -> str:
        verb = "require" if self.weight is None else "prefer"
        weight = "" if self.weight is None else f" (weight {self.weight})"
        return f"{verb} {self.topology_key} with pods {self.group}{weight}"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the term, unless the pod has it or the user's configuration is kept."""
        return self._added_term(pod, _AFFINITY, self.weight)

    def _own(self, pod: PodEditor) -> str:
        if any(self._selects(pod, each) for each in _terms(pod, _AFFINITY)):
            return self._over("podAffinity")
        if any(self._selects(pod, each) for each in pod.get(*_ANTI_AFFINITY, REQUIRED) or ()):
            return self._over("podAntiAffinity")
        if self.weight is None and any(self._is_of_others(pod, each) for each in pod.get(*_AFFINITY, REQUIRED) or ()):
            return _OF_OTHERS
        hard = (each for each in pod.get(*CONSTRAINTS) or () if each.get("whenUnsatisfiable") == "DoNotSchedule")
        return self._over("topologySpreadConstraints" if any(self._selects(pod, each) for each in hard) else "")

    def _is_of_others(self, pod: PodEditor, term: Mapping[str, Any]) -> bool:
        """Return whether `term` does not select the pod itself. A selector of namespaces selects it if it is empty."""
        names, selector = term.get("namespaces") or (), term.get("namespaceSelector")
        is_here = selector == {} or (selector is None and not names) or pod.get("metadata", "namespace") in names
        return not is_here or not self._matches(pod, term)


@dataclass(frozen=True, slots=True)
class SpreadByAntiAffinity(_Spread):
    """Add podAntiAffinity for the group: required, or preferred with `weight`."""

    weight: int | None

    def __str__(self) -> str:
        verb = "require" if self.weight is None else "prefer"
        weight = "" if self.weight is None else f" (weight {self.weight})"
        return f"{verb} {self.topology_key} without pods {self.group}{weight}"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the term, unless the pod has it or the user's configuration is kept."""
        return self._added_term(pod, _ANTI_AFFINITY, self.weight)


@dataclass(frozen=True, slots=True)
class SpreadByConstraint(_Spread):
    """Add a topology spread constraint for the group.

    Nodes whose taints the pod does not tolerate do not count as domains. By default, kube-scheduler also ignores nodes
    that the pod's node affinity excludes.
    """

    max_skew: int
    when_unsatisfiable: WhenUnsatisfiable

    def __str__(self) -> str:
        return f"spread pods {self.group} over {self.topology_key} ({self.when_unsatisfiable}, maxSkew {self.max_skew})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the constraint, unless the pod has it or the user's configuration is kept."""
        constraint = {
            "maxSkew": self.max_skew,
            "topologyKey": self.topology_key,
            "whenUnsatisfiable": self.when_unsatisfiable,
            "labelSelector": self._selector,
            "nodeTaintsPolicy": "Honor",
        }
        is_present = constraint in (pod.get(*CONSTRAINTS) or ())
        return self._added(pod, constraint, CONSTRAINTS, is_present=is_present)


def _terms(pod: PodEditor, path: Path) -> Iterator[Mapping[str, Any]]:
    required: Sequence[Mapping[str, Any]] = pod.get(*path, REQUIRED) or ()
    yield from required
    for weighted in pod.get(*path, PREFERRED) or ():
        yield weighted.get("podAffinityTerm") or {}
