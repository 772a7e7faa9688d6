"""Builds the audit record of a request and its verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
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


def audit_record(request: AdmissionRequest, verdict: Verdict | ObjectVerdict, policy: Policy) -> AuditRecord:
    """Return the audit record of one admission.

    Fields that differ between equal pods are empty, so that the record can be a template.
    """
    placement, error = placement_of(verdict), None
    if isinstance(verdict, Bypassed):
        error = verdict.reason
    elif isinstance(verdict, Denied):
        error = verdict.denial.message
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
        workload_type=verdict.workload_type,
        policy=PolicyName(policy.name, policy.revision),
        outcome=verdict.outcome,
        rules=tuple(RuleEntry(rule.name, rule.edits, rule.skipped) for rule in verdict.rules),
        patch=tuple(verdict.operations),
        warnings=verdict.warnings,
        placement=placement_entry(placement) if placement else None,
        error=error,
        duration_ms=0.0,
        replica="",
        kind=request.kind or POD,
        qos_class=verdict.mutated.qos_class if isinstance(verdict, Allowed) else None,
        before=replaced_values(request.object, verdict.operations),
    )


def error_record(request: AdmissionRequest, message: str, policy: Policy) -> AuditRecord:
    """Return the audit record of an admission that failed with an internal error."""
    return replace(audit_record(request, Bypassed(message), policy), outcome="Error")


def shadowed(record: AuditRecord, reason: str) -> AuditRecord:
    """Return the record of a request that shadow mode allows unchanged because of `reason`.

    `record` is that of the response which was not given.
    """
    not_given = ShadowEntry(record.outcome, record.rules, record.patch, record.warnings, record.placement, record.error)
    return replace(
        record,
        outcome="Bypassed",
        rules=(),
        patch=(),
        warnings=(),
        placement=None,
        error=reason,
        qos_class=None,
        shadow=not_given,
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
