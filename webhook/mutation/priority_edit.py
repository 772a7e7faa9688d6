"""The edit of the priority class; `webhook.mutation.edits` describes the laws that edits obey."""

from dataclasses import dataclass

from webhook.kube.text import cut
from webhook.mutation.editor import PodEditor
from webhook.mutation.edits import CHANGED, KEPT, Effect
from webhook.mutation.node_terms import LONGEST_SHOWN

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
