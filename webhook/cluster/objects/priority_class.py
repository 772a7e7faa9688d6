"""PriorityClasses: the priority and preemption policy that a class name gives a pod."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.kube.reader import Reader, reading

PRIORITY_CLASS_KIND = "PriorityClass"
NEVER = "Never"


class PriorityClass(NamedTuple):
    """A PriorityClass. `never_preempts` is true if its pods stay pending and do not preempt other pods.

    `is_planned` is true if the class does not exist yet. Such a class does not show that the classes of the cluster are
    known.
    """

    name: str
    value: int
    never_preempts: bool = False
    is_default: bool = False
    is_planned: bool = False

    @classmethod
    @reading
    def of(cls, content: Reader) -> "PriorityClass":
        """Read a PriorityClass."""
        name, value = content.object("metadata").text("name"), content.integer("value")
        return cls(name, value, content.text("preemptionPolicy") == NEVER, content.boolean("globalDefault"))


# The classes that every cluster has.
# Source: k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go, systemPriorityClasses
_SYSTEM_CLASSES = {
    name: PriorityClass(name, value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
_NONE = PriorityClass("", 0)


def priority_class_named(name: str, classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """Return the class `name`, or None if it is not known; for an empty name, the cluster's default.

    Source: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go, admitPod and getDefaultPriority
    """
    if name:
        return classes.get(name) or _SYSTEM_CLASSES.get(name)
    # If there are several defaults, the API server uses the lowest.
    return min((each for each in classes.values() if each.is_default), key=lambda each: each.value, default=_NONE)
