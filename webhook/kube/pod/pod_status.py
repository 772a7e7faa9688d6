"""The status of a pod. Its largest parts, which most pods have for nothing that is read, are only decoded if needed."""

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder, encode

MISSING: Final = Raw()
# The type of the condition of a resize that its node cannot allocate.
RESIZE_PENDING: Final = "PodResizePending"
_RESIZE_PENDING: Final = RESIZE_PENDING.encode()
# The ends of the keys `resources` and `allocatedResources`.
_AMOUNTS: Final = b'esources"'
_WAITING: Final = b'"waiting"'

Time = Annotated[datetime, Meta(tz=True)]


def contains(json: Raw, word: bytes) -> bool:
    """Return whether `json` contains `word`."""
    # `in` would first try to use the word as a number, which takes longer than the search.
    return bool(json) and bytes(json).find(word) >= 0


class Waiting(Struct, frozen=True, gc=False, omit_defaults=True):
    """The reason why a container waits."""

    reason: str | None = None


class ContainerState(Struct, frozen=True, gc=False, omit_defaults=True):
    """The state of a container that waits."""

    waiting: Waiting | None = None


class ContainerWithState(Struct, frozen=True, gc=False):
    """The state in the status of a container."""

    state: ContainerState | None = None


class ContainerStatus(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The amounts in the status of a container."""

    name: Raw = MISSING
    resources: Raw = MISSING
    allocated_resources: Raw = MISSING


class Condition(Struct, frozen=True, gc=False, omit_defaults=True):
    """A condition in the status of a pod."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class PodStatus(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The status of a pod.

    Conditions and the statuses of containers are only decoded if their JSON contains a word that is looked for.
    """

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: Time | None = None
    conditions: Raw = MISSING
    resources: Raw = MISSING
    allocated_resources: Raw = MISSING
    container_statuses: Raw = MISSING
    init_container_statuses: Raw = MISSING
    resource_claim_statuses: Raw = MISSING
    extended_resource_claim_status: Raw = MISSING

    def conditions_with(self, word: bytes) -> list[Condition]:
        """Return all conditions, or none if no condition contains `word`.

        Raises:
            ValidationError: the conditions are malformed.
        """
        return _CONDITIONS.decode(self.conditions) or [] if contains(self.conditions, word) else []

    def waiting_reason(self) -> str:
        """Return the reason of the first waiting container, init containers first, or "" if none waits.

        Raises:
            ValidationError: the statuses of containers are malformed.
        """
        for statuses in (self.init_container_statuses, self.container_statuses):
            if contains(statuses, _WAITING):
                states = [each.state for each in _STATES.decode(statuses) or ()]
                reasons = [each.waiting.reason for each in states if each is not None and each.waiting is not None]
                if reason := next(filter(None, reasons), ""):
                    return reason
        return ""

    def amounts(self) -> "PodStatus":
        """Return the part with the amounts of resources, which count on a node.

        Raises:
            ValidationError: conditions or statuses of containers are malformed.
        """
        resizes, containers, init_containers = MISSING, MISSING, MISSING
        if pending := [each for each in self.conditions_with(_RESIZE_PENDING) if each.type == RESIZE_PENDING]:
            resizes = Raw(encode([Condition(each.type, reason=each.reason) for each in pending]))
        has_amounts = contains(self.container_statuses, _AMOUNTS) or contains(self.init_container_statuses, _AMOUNTS)
        if not (pending or has_amounts or self.resources or self.allocated_resources):
            return NO_STATUS
        if pending or has_amounts:
            containers, init_containers = _amounts(self.container_statuses), _amounts(self.init_container_statuses)
        return PodStatus(
            conditions=resizes,
            resources=self.resources,
            allocated_resources=self.allocated_resources,
            container_statuses=containers,
            init_container_statuses=init_containers,
        )


def _amounts(statuses: Raw) -> Raw:
    return Raw(encode(_STATUSES.decode(statuses))) if statuses else MISSING


_CONDITIONS: Final = Decoder(list[Condition] | None)
_STATES: Final = Decoder(list[ContainerWithState] | None)
_STATUSES: Final = Decoder(list[ContainerStatus] | None)

NO_STATUS: Final = PodStatus()
