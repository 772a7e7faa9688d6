"""The verdict on one admission request."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from webhook.documents.field import FieldError
from webhook.kube.api.review_answer import Denial
from webhook.kube.pod.qos import QosClass
from webhook.mutation.mutate import RuleOutcome
from webhook.placement.scheduler import Placement
from webhook.placement.waiting.waiting_pods import WaitingPod

JsonObject = dict[str, Any]


class MutatedPod(Protocol):
    """A pod that the policy applies to, after its mutation; it is made, and read, on first use."""

    @property
    def pod(self) -> JsonObject:
        """Return the mutated pod."""
        ...

    @property
    def operations(self) -> list[JsonObject]:
        """Return the RFC 6902 operations that make it."""
        ...

    @property
    def patch(self) -> bytes:
        """Return the operations as JSON; empty without any."""
        ...

    @property
    def rules(self) -> tuple[RuleOutcome, ...]:
        """Return the outcome of each rule."""
        ...

    @property
    def qos_class(self) -> QosClass | None:
        """Return the QoS class; None if the resources are malformed."""
        ...

    @property
    def waiting(self) -> tuple[bytes, WaitingPod] | None:
        """Return what a scheduler sees of the pod while it waits; None if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Patched:
    """Allowed with a patch: `operations` turn the request's object into `pod`."""

    workload_type: str
    mutated: MutatedPod
    warnings: tuple[str, ...]
    placement: Placement
    outcome: Literal["Patched"] = "Patched"

    @property
    def pod(self) -> JsonObject:
        """Return the mutated pod."""
        return self.mutated.pod

    @property
    def operations(self) -> list[JsonObject]:
        """Return the RFC 6902 operations."""
        return self.mutated.operations

    @property
    def rules(self) -> tuple[RuleOutcome, ...]:
        """Return the outcome of each rule."""
        return self.mutated.rules


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Allowed without a patch: the pod already complies with the policy."""

    workload_type: str
    mutated: MutatedPod
    warnings: tuple[str, ...]
    placement: Placement
    outcome: Literal["Unchanged"] = "Unchanged"

    @property
    def pod(self) -> JsonObject:
        """Return the pod."""
        return self.mutated.pod

    @property
    def rules(self) -> tuple[RuleOutcome, ...]:
        """Return the outcome of each rule."""
        return self.mutated.rules


@dataclass(frozen=True, slots=True)
class Advised:
    """Allowed: an object other than a pod. `placement` is set if its pods were placed.

    `operations` change its pod templates, if the policy says so.
    """

    workload_type: str | None
    warnings: tuple[str, ...] = ()
    placement: Placement | None = None
    rules: tuple[RuleOutcome, ...] = ()
    operations: tuple[JsonObject, ...] = ()

    @property
    def outcome(self) -> Literal["Patched", "Unchanged"]:
        """Return whether the object is patched."""
        return "Patched" if self.operations else "Unchanged"


@dataclass(frozen=True, slots=True)
class Bypassed:
    """Allowed without evaluation; `reason` states why the policy does not apply."""

    reason: str
    warnings: tuple[str, ...] = ()
    workload_type: str | None = None
    outcome: Literal["Bypassed"] = "Bypassed"


@dataclass(frozen=True, slots=True)
class Denied:
    """Denied. `rules` and `placement` are set if the placement check is the cause, `errors` if annotations are."""

    denial: Denial
    workload_type: str | None
    rules: tuple[RuleOutcome, ...] = ()
    warnings: tuple[str, ...] = ()
    placement: Placement | None = None
    errors: tuple[FieldError, ...] = ()
    outcome: Literal["Denied"] = "Denied"


Verdict = Patched | Unchanged | Bypassed | Denied
"""The verdict on a pod."""
ObjectVerdict = Advised | Bypassed | Denied
"""The verdict on another object."""
