"""The status of a pod. Its conditions, of which most are not read, are only decoded if needed."""

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

MISSING: Final = Raw()
# The type of the condition of a resize that its node cannot allocate.
RESIZE_PENDING: Final = "PodResizePending"
_RESIZE_PENDING: Final = RESIZE_PENDING.encode()

Time = Annotated[datetime, Meta(tz=True)]


class Waiting(Struct, frozen=True, gc=False, omit_defaults=True):
    """The reason why a container waits."""

    reason: str | None = None


class Terminated(Struct, frozen=True, gc=False):
    """The state of a container that has ended. None of its fields is read."""


class ContainerState(Struct, frozen=True, gc=False, omit_defaults=True):
    """The state of a container. It is empty while the container runs."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The status of a container."""

    name: Raw = MISSING
    resources: Raw = MISSING
    allocated_resources: Raw = MISSING
    state: ContainerState | None = None


class Condition(Struct, frozen=True, gc=False, omit_defaults=True):
    """A condition in the status of a pod."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class PodStatus(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The status of a pod.

    The conditions are only decoded if their JSON contains a word that is looked for.
    """

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: Time | None = None
    conditions: Raw = MISSING
    resources: Raw = MISSING
    allocated_resources: Raw = MISSING
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: Raw = MISSING
    extended_resource_claim_status: Raw = MISSING

    def conditions_with(self, word: bytes) -> list[Condition]:
        """Return all conditions, or none if no condition contains `word`.

        Raises:
            ValidationError: the conditions are malformed.
        """
        return _CONDITIONS.decode(self.conditions) or [] if bytes(self.conditions).find(word) >= 0 else []

    def amounts(self) -> "PodStatus":
        """Return the part with the amounts of resources, which count on a node.

        Raises:
            ValidationError: the conditions are malformed.
        """
        resizes = MISSING
        if bytes(self.conditions).find(_RESIZE_PENDING) >= 0:
            found = [each for each in self.conditions_with(_RESIZE_PENDING) if each.type == RESIZE_PENDING]
            resizes = Raw(encode([Condition(each.type, reason=each.reason) for each in found])) if found else MISSING
        containers, init_containers = self.container_statuses, self.init_container_statuses
        # Most containers run. The state that is left of these is equal for all.
        for each in (*(init_containers or ()), *(containers or ())):
            if each.state is not None and each.state != _RUNS:
                containers, init_containers = _without_states(containers), _without_states(init_containers)
                break
        return PodStatus(
            conditions=resizes,
            resources=self.resources,
            allocated_resources=self.allocated_resources,
            container_statuses=containers,
            init_container_statuses=init_containers,
        )


def _without_states(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
    return None if statuses is None else [replace(each, state=_RUNS) for each in statuses]


_CONDITIONS: Final = Decoder(list[Condition] | None)
_RUNS: Final = ContainerState()
NO_STATUS: Final = PodStatus()
