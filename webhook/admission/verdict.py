"""The verdict on one admission request."""

from dataclasses import dataclass
from typing import Literal

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.documents.documents import JsonObject
from webhook.mutation.mutate import RuleOutcome
from webhook.placement.scheduler import Placement


@dataclass(frozen=True, slots=True)
class Allowed:
    """An allowed pod that the policy applies to: `Unchanged` if it already complies with the policy, else `Patched`."""

    mutated: Mutated
    warnings: tuple[str, ...]
    placement: Placement

    @property
    def workload_type(self) -> str:
        """Return the type of the workload."""
        return self.mutated.injection.workload_type

    @property
    def outcome(self) -> Literal["Patched", "Unchanged"]:
        """Return `Patched` for a pod with operations, and `Unchanged` for one without."""
        return "Patched" if self.operations else "Unchanged"

    @property
    def pod(self) -> JsonObject:
        """Return the mutated pod."""
        return self.mutated.pod

    @property
    def rules(self) -> tuple[RuleOutcome, ...]:
        """Return the outcome of each rule."""
        return self.mutated.injection.rules

    @property
    def operations(self) -> list[JsonObject]:
        """Return the RFC 6902 operations that turn the request's object into `pod`, or none if it already complies."""
        return self.mutated.injection.operations


@dataclass(frozen=True, slots=True)
class Advised:
    """An allowed object other than a pod, with the `operations` on its pod templates and its `placement`, if any."""

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
class DeniedPlacement(Denied):
    """Denied by the placement check."""

    placement: Placement | None = None


Verdict = Allowed | Bypassed | Denied
"""The verdict on a pod."""
ObjectVerdict = Advised | Bypassed | Denied
"""The verdict on another object."""


def placement_of(verdict: Verdict | ObjectVerdict) -> Placement | None:
    """Return the placement in `verdict`, or None if nothing was placed."""
    if isinstance(verdict, Denied):
        return verdict.placement if isinstance(verdict, DeniedPlacement) else None
    return verdict.placement
