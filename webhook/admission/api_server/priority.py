"""Priority: the API server rejects a pod whose PriorityClass does not exist or whose priority contradicts it.

The value of the PriorityClass is looked up in `webhook/placement/pod/preemption.py`.

Source: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go, admitPod
"""

from collections.abc import Mapping
from typing import Any

from webhook.cluster.objects.priority_class import NEVER, priority_class_named
from webhook.cluster.snapshot import Snapshot

_LOWER = "PreemptLowerPriority"
_COMPUTED = "priority admission controller computed {} from the given PriorityClass name"


def priority_fault(pod: Mapping[str, Any], snapshot: Snapshot) -> str:
    """Return the reason why the API server rejects the class or the priority of `pod`, or "" if it accepts them.

    The result is also "" if the class is not known. For a pod without a class, this is the default class.
    """
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    if not name and not snapshot.knows_priority_classes:
        return ""
    priority, policy = spec.get("priority"), spec.get("preemptionPolicy")
    found = priority_class_named(name or "", snapshot.priority_classes)
    if found is None:
        return f"no PriorityClass with name {name} was found" if snapshot.lacks_priority_class(name) else ""
    if priority is not None and priority != found.value:
        given = f"the integer value of priority ({priority}) must not be provided in pod spec"
        return f"{given}; {_COMPUTED.format(found.value)}"
    computed = NEVER if found.never_preempts else _LOWER
    if policy and policy != computed:
        given = f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec"
        return f"{given}; {_COMPUTED.format(computed)}"
    return ""
