"""Builds the audit record of a request and its verdict."""

from collections.abc import Mapping
from typing import Any

from webhook.audit.entries import GangEntry, Owner, PlacementEntry, PolicyName, ReservedEntry, RuleEntry, ShadowEntry
from webhook.audit.pointer import values_before
from webhook.audit.record import POD, AuditRecord
from webhook.kube.admission import AdmissionRequest
from webhook.kube.qos import qos_class
from webhook.placement.scheduler import Placement
from webhook.policy.policy import Policy
from webhook.verdict import Advised, Bypassed, Denied, ObjectVerdict, Patched, Unchanged, Verdict


def audit_record(
    request: AdmissionRequest,
    verdict: Verdict | ObjectVerdict | str,
    policy: Policy,
    *,
    time: str = "",
    decision: str = "",
    duration_seconds: float = 0.0,
    replica: str = "",
    shadow: ShadowEntry | None = None,
) -> AuditRecord:
    """Return the audit record of one admission; a `verdict` that is a text is the message of an internal error.

    `shadow` is the answer that was not given.

    The keyword arguments differ between equal pods, so they are left out for a record template.
    """
    rules = () if isinstance(verdict, (str, Bypassed)) else verdict.rules
    operations = verdict.operations if isinstance(verdict, Patched | Advised) else ()
    # An "add" has no previous value; otherwise it would be a "replace".
    would_be = shadow.patch if shadow is not None else operations
    replacements = [operation for operation in would_be if operation["op"] != "add"]
    placement = None if isinstance(verdict, (str, Bypassed)) else verdict.placement
    return AuditRecord(
        time=time,
        decision=decision,
        uid=request.uid,
        dry_run=request.dry_run,
        operation=request.operation,
        namespace=request.namespace,
        name=request.name,
        owner=_owner(request.object),
        user=request.user,
        workload_type=None if isinstance(verdict, str) else verdict.workload_type,
        policy=PolicyName(policy.name, policy.revision),
        outcome="Error" if isinstance(verdict, str) else verdict.outcome,
        rules=tuple(RuleEntry(rule.name, rule.edits, rule.skipped) for rule in rules),
        patch=tuple(operations),
        warnings=() if isinstance(verdict, str) else verdict.warnings,
        placement=_placement(placement) if placement else None,
        error=_error(verdict),
        duration_ms=duration_seconds * 1000,
        replica=replica,
        kind=request.kind or POD,
        qos_class=qos_class(verdict.pod) if isinstance(verdict, Patched | Unchanged) else None,
        before=values_before(request.object or {}, replacements) if replacements else {},
        shadow=shadow,
    )


def shadow_entry(verdict: Verdict | ObjectVerdict | str) -> ShadowEntry:
    """Return `verdict`, or the message of an internal error, as an answer that is not given."""
    if isinstance(verdict, str):
        return ShadowEntry("Error", message=verdict)
    rules, placement = ((), None) if isinstance(verdict, Bypassed) else (verdict.rules, verdict.placement)
    return ShadowEntry(
        verdict.outcome,
        tuple(RuleEntry(rule.name, rule.edits, rule.skipped) for rule in rules),
        tuple(verdict.operations) if isinstance(verdict, Patched | Advised) else (),
        verdict.warnings,
        _placement(placement) if placement else None,
        _error(verdict),
    )


def _owner(pod: Mapping[str, Any] | None) -> Owner | None:
    metadata = (pod or {}).get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller"):
            return Owner(str(owner.get("kind", "")), str(owner.get("name", "")))
    return None


def _placement(placement: Placement) -> PlacementEntry:
    gang = placement.gang
    return PlacementEntry(
        placement.verdict,
        placement.node,
        placement.total,
        placement.feasible,
        placement.message,
        placement.unmodelled,
        ReservedEntry(placement.reserved_pods) if placement.reserved_pods else None,
        GangEntry(gang.name, gang.size, gang.fit, gang.is_complete) if gang else None,
    )


def _error(verdict: Verdict | ObjectVerdict | str) -> str | None:
    """Return the reason for an error, a denial or a bypass."""
    if isinstance(verdict, str):
        return verdict
    if isinstance(verdict, Denied):
        return verdict.denial.message
    return verdict.reason if isinstance(verdict, Bypassed) else None
