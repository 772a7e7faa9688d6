"""Edits: the changes that rules can make to a pod, as data.

Every edit is idempotent. Except for `SetAnnotation`, an edit never removes or overrides a value of the user. An edit
that is already satisfied changes nothing. An edit that contradicts a value of the user keeps this value and returns a
warning with the consequence.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from webhook.backends.backend import PodField, annotation
from webhook.documents.documents import JsonObject
from webhook.documents.text import cut
from webhook.kube import names as wellknown
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, any_tolerates, covers
from webhook.mutation.edits.editor import Path, PodEditor
from webhook.mutation.edits.node_terms import LONGEST_SHOWN, NodeLabelRequirement
from webhook.policy.spec.schedulers import BinPacking

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PREFERRED_PODS: Path = ("spec", "affinity", "podAffinity", PREFERRED)


# etcd stores no larger object, and applying a larger edit would delay the requests of other users.
LARGEST_GROWTH_BYTES = 1536 * 1024


class PodTooLargeError(Exception):
    """Raised if the pod would become too large to be stored; its argument is the field error."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of an edit: whether the pod changed, warnings for the user, and the user's value that was kept."""

    changed: bool
    warnings: tuple[str, ...] = ()
    kept_value: str = ""


KEPT = Effect(changed=False)
CHANGED = Effect(changed=True)


class Edit(Protocol):
    """One change to a pod. `str(edit)` describes it in messages and audit records."""

    def apply(self, pod: PodEditor) -> Effect:
        """Change the pod, unless it satisfies the edit already or the user chose another value.

        Raises:
            PodTooLargeError: the pod would become too large to be stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class AddToleration:
    """Tolerate the taint `key`=`value`:`effect`. An empty effect matches every effect.

    With the operator Exists, every value is tolerated. `seconds` limits the time under a NoExecute taint.

    A toleration that is covered by another one is not added, because PodTolerationRestriction would drop it, and then
    every later update of the pod would be rejected.
    """

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE
    operator: Literal["Equal", "Exists"] = "Equal"
    seconds: int | None = None

    def __str__(self) -> str:
        value = "*" if self.operator == "Exists" else self.value
        seconds = "" if self.seconds is None else f" for {self.seconds} s"
        return f"tolerate {self.key}={value}:{self.effect or '*'}{seconds}"

    def to_json(self) -> JsonObject:
        """Return the toleration."""
        toleration: JsonObject = {"key": self.key, "operator": self.operator}
        if self.operator == "Equal":
            toleration["value"] = self.value
        if self.effect:
            toleration["effect"] = self.effect
        if self.seconds is not None:
            toleration["tolerationSeconds"] = self.seconds
        return toleration

    def apply(self, pod: PodEditor) -> Effect:
        """Append the toleration, unless another one covers it."""
        toleration = self.to_json()
        # Under a NoExecute taint, `covers` must compare tolerationSeconds.
        has_time = self.effect in ("", NO_EXECUTE)
        if self._may_be_covered(pod.tolerations) and (
            not has_time or any(covers(present, toleration) for present in pod.get("spec", "tolerations") or ())
        ):
            return KEPT
        pod.append(toleration, "spec", "tolerations")
        pod.tolerations.add(Toleration.of(toleration))
        return CHANGED

    def _may_be_covered(self, present: AbstractSet[Toleration]) -> bool:
        """Return whether one of `present` covers the toleration, ignoring tolerationSeconds."""
        if self.operator == "Equal":
            return any_tolerates(present, Taint(self.key, self.value, self.effect))
        return any(
            Toleration(key, "Exists", "", effect) in present for key in (self.key, "") for effect in (self.effect, "")
        )


@dataclass(frozen=True, slots=True)
class AddLabel:
    """Add the label `key`, unless the user set another value."""

    key: str
    value: str
    consequence: str
    """The consequence if the user's value is kept."""

    def __str__(self) -> str:
        return f"label {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Add the label if it is missing."""
        present = pod.get("metadata", "labels", self.key)
        if present is None:
            pod.set(self.value, "metadata", "labels", self.key)
            return CHANGED
        if present == self.value:
            return KEPT
        present = cut(present, LONGEST_SHOWN)
        warning = f"label {self.key}={present} of the pod wins over the policy's {self.key}={self.value}: "
        kept_value = f"label {self.key}={present}"
        return Effect(changed=False, warnings=(warning + self.consequence,), kept_value=kept_value)


@dataclass(frozen=True, slots=True)
class PreferPodAffinity:
    """Prefer, with `weight`, topology domains that run pods of `namespaces` with the label."""

    weight: int
    label_key: str
    label_value: str
    topology_key: str
    namespaces: Literal["all", "same"] = "all"

    def __str__(self) -> str:
        pods = f"pods {self.label_key}={self.label_value}"
        if self.namespaces == "same":
            pods += " of the same namespace"
        return f"prefer {self.topology_key} with {pods} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the preferred podAffinity term, unless the user has one for the same pods and topology."""
        if any(self.is_same(weighted.get("podAffinityTerm") or {}) for weighted in pod.get(*PREFERRED_PODS) or ()):
            return KEPT
        requirement = {"key": self.label_key, "operator": "In", "values": [self.label_value]}
        # An empty selector selects all namespaces, an absent one the namespace of the pod only.
        everywhere: JsonObject = {"namespaceSelector": {}} if self.namespaces == "all" else {}
        term = {
            "labelSelector": {"matchExpressions": [requirement]},
            **everywhere,
            "topologyKey": self.topology_key,
        }
        pod.append({"weight": self.weight, "podAffinityTerm": term}, *PREFERRED_PODS)
        return CHANGED

    def is_same(self, term: Mapping[str, Any]) -> bool:
        """Return whether `term` is for the same pods and the same topology."""
        selector = term.get("labelSelector") or {}
        expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
        labels: Mapping[str, str] = selector.get("matchLabels") or {}
        wanted = NodeLabelRequirement(self.label_key, "In", (self.label_value,))
        selects = (not labels and len(expressions) == 1 and wanted.equals(expressions[0])) or (
            not expressions and labels == {self.label_key: self.label_value}
        )
        narrowed = term.get("matchLabelKeys") or term.get("mismatchLabelKeys")
        if self.namespaces == "all":
            in_namespaces = term.get("namespaceSelector") == {}
        else:
            in_namespaces = term.get("namespaceSelector") is None and not term.get("namespaces")
        return selects and in_namespaces and not narrowed and term.get("topologyKey") == self.topology_key


@dataclass(frozen=True, slots=True)
class SetScheduler:
    """Set the scheduler `name`, if the pod has the default scheduler.

    `requested` is true if the pod's annotation requests the scheduler. If the pod names another scheduler, there is a
    warning only if `requested` is true, not for the default of a workload type.
    """

    name: str
    requested: bool

    def __str__(self) -> str:
        return f"scheduler {self.name}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the scheduler name if the pod has none or the default one."""
        present = pod.get("spec", "schedulerName") or wellknown.DEFAULT_SCHEDULER
        if present == self.name:
            return KEPT
        if present == wellknown.DEFAULT_SCHEDULER:
            pod.set(self.name, "spec", "schedulerName")
            return CHANGED
        present = cut(present, LONGEST_SHOWN)
        warning = (
            f"spec.schedulerName {present} of the pod wins over the annotation's {self.name}: {present} schedules it"
        )
        kept_value = f"schedulerName {present}"
        return Effect(changed=False, warnings=(warning,) if self.requested else (), kept_value=kept_value)


@dataclass(frozen=True, slots=True)
class SetAnnotation:
    """Set an annotation of the webhook, which records the mutation and therefore overrides a value of the user."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"annotation {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the annotation, unless it has the value already."""
        if pod.get("metadata", "annotations", self.key) == self.value:
            return KEPT
        pod.set(self.value, "metadata", "annotations", self.key)
        return CHANGED


def packing_hint(packing: BinPacking) -> PreferPodAffinity:
    """Return the preference for domains with packed pods."""
    return PreferPodAffinity(
        packing.weight, packing.label_key, packing.label_value, packing.topology_key, packing.namespaces
    )


@dataclass(frozen=True, slots=True)
class SetDomain:
    """Set the annotations by which a scheduler keeps a gang in one domain, unless the user has set others for that.

    These are annotations whose keys begin with one of `keys`. `is_requested` is true if the pod's annotation requests
    the edit, so that there is a warning if nothing is set.
    """

    fields: tuple[PodField, ...]
    keys: tuple[str, ...]
    is_requested: bool

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    def apply(self, pod: PodEditor) -> Effect:
        """Set the annotations that are missing."""
        wanted = {each.path: each.value for each in self.fields}
        for key, value in (pod.get("metadata", "annotations") or {}).items():
            if key.startswith(self.keys) and wanted.get(("metadata", "annotations", key)) != value:
                kept = str(annotation(key, cut(value, LONGEST_SHOWN)))
                warning = f"{kept} of the pod wins over its annotation within, which adds nothing"
                return Effect(changed=False, warnings=(warning,) if self.is_requested else (), kept_value=kept)
        missing = [path for path in wanted if pod.get(*path) is None]
        for path in missing:
            pod.set(wanted[path], *path)
        return CHANGED if missing else KEPT
