"""Builds the audit record of a request and its verdict."""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Allowed, ObjectVerdict, Verdict, placement_of
from webhook.audit.record import (
    POD,
    AuditRecord,
    GangEntry,
    Owner,
    PlacementEntry,
    PolicyName,
    ReservedEntry,
    RuleEntry,
    ShadowEntry,
)
from webhook.audit.replaced_values import values_before
from webhook.documents.documents import JsonObject
from webhook.kube.api.admission import AdmissionRequest
from webhook.placement.scheduler import Placement
from webhook.policy.policy import Policy


def audit_record(
    request: AdmissionRequest,
    verdict: Verdict | ObjectVerdict | str,
    policy: Policy,
    *,
    shadow: ShadowEntry | None = None,
) -> AuditRecord:
    """Return the audit record of one admission. If `verdict` is a string, it is the message of an internal error.

    `shadow` is the response that was not sent because of shadow mode. Fields that differ between equal pods are empty,
    so that the record can be a template.
    """
    answer = shadow_entry(verdict)
    return AuditRecord(
        time="",
        decision="",
        uid=request.uid,
        dry_run=request.dry_run,
        operation=request.operation,
        namespace=request.namespace,
        name=request.name,
        owner=owner_of(request.object),
        user=request.user,
        workload_type=None if isinstance(verdict, str) else verdict.workload_type,
        policy=PolicyName(policy.name, policy.revision),
        outcome="Error" if isinstance(verdict, str) else verdict.outcome,
        rules=answer.rules,
        patch=answer.patch,
        warnings=answer.warnings,
        placement=answer.placement,
        error=answer.message,
        duration_ms=0.0,
        replica="",
        kind=request.kind or POD,
        qos_class=verdict.mutated.qos_class if isinstance(verdict, Allowed) else None,
        before=replaced_values(request.object, (shadow or answer).patch),
        shadow=shadow,
    )


def shadow_entry(verdict: Verdict | ObjectVerdict | str) -> ShadowEntry:
    """Return the entry for `verdict`, a verdict or the message of an error, which shadow mode did not enforce."""
    if isinstance(verdict, str):
        return ShadowEntry("Error", message=verdict)
    message = verdict.denial.message if isinstance(verdict, Denied) else None
    placement = placement_of(verdict)
    return ShadowEntry(
        verdict.outcome,
        tuple(RuleEntry(rule.name, rule.edits, rule.skipped) for rule in verdict.rules),
        tuple(verdict.operations),
        verdict.warnings,
        placement_entry(placement) if placement else None,
        verdict.reason if isinstance(verdict, Bypassed) else message,
    )


def replaced_values(pod: Mapping[str, Any] | None, operations: Iterable[JsonObject]) -> JsonObject:
    """Return the values of `pod` that `operations` replace, by JSON pointer."""
    # An "add" has no previous value; otherwise it would be a "replace".
    replacements = [operation for operation in operations if operation["op"] != "add"]
    return values_before(pod or {}, replacements) if replacements else {}


def owner_of(pod: Mapping[str, Any] | None) -> Owner | None:
    """Return the controller of `pod`, a raw object of any shape, or None if it has none."""
    metadata = (pod or {}).get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller"):
            return Owner(str(owner.get("kind", "")), str(owner.get("name", "")))
    return None


def placement_entry(placement: Placement) -> PlacementEntry:
    """Return the entry of the record for `placement`."""
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
