"""Edits of queues, priority and resources."""

from dataclasses import dataclass
from typing import Any

from webhook.backends.backend import PodField
from webhook.documents.text import cut
from webhook.mutation.edits.editor import Path, PodEditor
from webhook.mutation.edits.edits import CHANGED, KEPT, Effect
from webhook.mutation.edits.node_terms import LONGEST_SHOWN


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


PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class SetPriorityClass:
    """Set the PriorityClass `name`, if the pod has none or the cluster's `default_class`.

    The admission plugin Priority runs before webhooks and again after them. The first time, it sets `priority` and
    `preemptionPolicy` by the class that it finds. The second time, it denies a pod whose values are not those of the
    class, so the edit removes both, and the plugin sets them again.

    Source: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go, admitPod and getDefaultPriority
    """

    name: str
    default_class: str | None

    def __str__(self) -> str:
        return f"priority class {self.name}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the class and remove the values of the default, unless the user chose a class or values."""
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
    """Return a value of a pod without a class that is not the default without classes: the API server denies it."""
    if (priority := pod.get("spec", "priority")) not in (None, 0):
        return f"priority {cut(str(priority), LONGEST_SHOWN)}"
    if (preemption := pod.get("spec", "preemptionPolicy")) not in (None, "", PREEMPT_LOWER_PRIORITY):
        return f"preemptionPolicy {cut(str(preemption), LONGEST_SHOWN)}"
    return ""


@dataclass(frozen=True, slots=True)
class SetAmount:
    """Set the request or limit at `path` to `value`, unless there is one."""

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
