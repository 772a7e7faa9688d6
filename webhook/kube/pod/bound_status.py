"""The facts about a bound pod other than its load: its times, its controller, and the reason why it waits or ends.

There are two functions for each fact: one reads the raw object, and one reads the pod's view fast.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.json import Decoder, decode, encode

from webhook.documents.documents import field
from webhook.documents.parts import listed, texts
from webhook.kube.pod.amounts import is_extended_resource
from webhook.kube.pod.pod_status import PodStatus, Time
from webhook.kube.reader import Reader

# Type, status and reason of the condition of a pod that kube-scheduler has preempted.
_PREEMPTED = ("DisruptionTarget", "True", "PreemptionByScheduler")
# The kubelet is about to start a container that waits for these reasons.
_CREATING = ("ContainerCreating", "PodInitializing")
# The pods of an owner have equal references to it, and their events come together.
_MOST_OWNERS, _MOST_OWNER_BYTES = 1024, 1024


class _Owner(Struct, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


_OWNERS = Decoder(list[_Owner] | None)


def controller_of(metadata: Reader) -> Reader | None:
    """Return the reference to the controller in the metadata of a pod, or None if there is none."""
    return next((each for each in metadata.objects("ownerReferences") if each.boolean("controller")), None)


def controller_name(metadata: Reader) -> str:
    """Return kind and name of the controller in the metadata of a pod, as `Job/train-1`, or "" if there is none."""
    owner = controller_of(metadata)
    return "" if owner is None else intern(f"{owner.text('kind')}/{owner.text('name')}")


def read_seconds(reader: Reader, key: str) -> int:
    """Return the time in the field `key` in Unix seconds, or 0 if there is none."""
    text = reader.text(key)
    try:
        return int(convert(text, Time).timestamp()) if text else 0
    except ValidationError:
        reader.error(key, text, "must be a time such as 2026-01-31T12:00:00Z")
        return 0


def is_preempted(status: Reader) -> bool:
    """Return whether kube-scheduler has preempted a pod that is being deleted.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption, PodTerminatingByPreemption
    """
    listing = listed(status.raw, "conditions")
    conditions = [(each.get("type"), each.get("status"), each.get("reason")) for each in listing]
    return next((each for each in conditions if each[0] == _PREEMPTED[0]), None) == _PREEMPTED


def waiting_reason(pod: Mapping[str, Any]) -> str:
    """Return the reason in the `waiting_status` of `pod`, or "" if there is none."""
    return intern(str(field(waiting_status(pod), "state", "waiting", "reason") or ""))


def waiting_status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status of the first container of `pod` that does not start, init containers first, or an empty one.

    It is empty if a container that uses devices runs; without such containers, if any runs. So a sidecar does not
    count, and a pod is not stuck while it is debugged or while its init containers do their work.
    """
    containers, init_containers = (listed(pod, "spec", part) for part in ("containers", "initContainers"))
    counting = [*filter(_uses_devices, containers)] or [*containers]
    counting += [each for each in init_containers if _uses_devices(each) or each.get("restartPolicy") != "Always"]
    names, status = {str(each.get("name")) for each in counting}, field(pod, "status") or {}
    first, then = (listed(status, part) for part in ("initContainerStatuses", "containerStatuses"))
    own = [each for each in (*first, *then) if str(each.get("name")) in names]
    if any(map(_runs, (*own, *listed(status, "ephemeralContainerStatuses")))):
        return {}
    for each in (*first, *own):
        reason = field(each, "state", "waiting", "reason")
        if isinstance(reason, str) and reason and reason not in _CREATING:
            return each
    return {}


def _uses_devices(container: Mapping[str, Any]) -> bool:
    amounts = (texts(container, "resources", part) for part in ("limits", "requests"))
    return any(map(is_extended_resource, chain(*amounts))) or bool(field(container, "resources", "claims"))


def _runs(status: Mapping[str, Any]) -> bool:
    return field(status, "state", "waiting") is None and field(status, "state", "terminated") is None


def waiting_reason_in(spec: Struct, status: PodStatus) -> str:
    """Return `waiting_reason` for the spec and the status in a view."""
    for statuses in (status.init_container_statuses, status.container_statuses):
        for each in statuses or ():
            waiting = None if each.state is None else each.state.waiting
            if waiting is not None and waiting.reason and waiting.reason not in _CREATING:
                return waiting_reason(decode(encode({"spec": spec, "status": status})))
    return ""


def controller_in(references: bytes) -> str:
    """Return the `controller_name` for `references`, the JSON of ownerReferences.

    Raises:
        ValidationError: the references are malformed.
    """
    if not references:
        return ""
    return (_controller_in if len(references) <= _MOST_OWNER_BYTES else _controller_in.__wrapped__)(references)


@lru_cache(_MOST_OWNERS)
def _controller_in(references: bytes) -> str:
    controller = next((each for each in _OWNERS.decode(references) or () if each.controller), None)
    return "" if controller is None else intern(f"{controller.kind}/{controller.name}")


def is_preempted_in(status: PodStatus) -> bool:
    """Return `is_preempted` for the status in a view.

    Raises:
        ValidationError: the conditions are malformed.
    """
    conditions = status.conditions_with(_PREEMPTED[0].encode())
    found = next((each for each in conditions if each.type == _PREEMPTED[0]), None)
    return found is not None and (found.type, found.status, found.reason) == _PREEMPTED
