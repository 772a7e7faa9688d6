"""The decision of a policy on one recorded admission, and the differences between two decisions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import orjson

from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.missed import NO_SCOPE, Scope
from webhook.admission.pipeline import admit_content, not_a_pod_creation
from webhook.admission.pod_content import PodContent
from webhook.admission.recorded_pod import RecordedPod
from webhook.admission.verdict import Verdict, placement_of
from webhook.audit.field_changes import field_path
from webhook.documents.documents import JsonObject
from webhook.documents.field import BETWEEN_ERRORS, InvalidInput
from webhook.documents.text import cut, printable
from webhook.kube.api.admission import pod_request
from webhook.kube.api.independent_patch import TooDeepError, independently_patched
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.policy.exempt import request_exemption
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

INVALID = "Invalid"

Kind = Literal["outcome", "verdict", "workload type", "scheduler", "rules", "tolerations", "fields", "warnings"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of changes, the most important first."""

_LONGEST_DETAIL = 300
_FIELD_DEPTH = 4
# They are reported as such.
_OF_OTHER_KINDS = ("/spec/tolerations", "/spec/schedulerName")
_WORSE = {"Feasible": 0, "Waiting": 1, "Infeasible": 2}


class Decision(NamedTuple):
    """The result of a policy for a pod.

    `outcome` is an outcome of audit records, or Invalid. `message` is the reason for a denial, a bypass or an error.
    `rules` are the edits of each rule that changed the pod. `verdict` is empty without a view of the cluster.
    `operations` are the patch without the name and revision of the policy, which are in every patch.
    """

    policy: str
    outcome: str
    message: str = ""
    workload_type: str = ""
    rules: Mapping[str, tuple[str, ...]] = {}
    scheduler: str = ""
    tolerations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    verdict: str = ""
    operations: tuple[JsonObject, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Return whether the pod would not be created."""
        return self.outcome in ("Denied", INVALID)

    def to_json(self) -> JsonObject:
        """Return the decision as `replay -o json` prints it."""
        return {
            "policy": self.policy,
            "outcome": self.outcome,
            "message": self.message or None,
            "workloadType": self.workload_type or None,
            "rules": sorted(self.rules),
            "scheduler": self.scheduler or None,
            "tolerations": list(self.tolerations),
            "warnings": list(self.warnings),
            "verdict": self.verdict or None,
        }


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides by the policy in `policies` for the namespace of a pod.

    `view_of` returns the view of the cluster on which a policy places pods. `scope_of` returns the namespace if the
    record does not have it, or None if it is not known.
    """

    policies: PolicySet
    view_of: Callable[[Policy], ClusterView | None] = lambda _: None
    scope_of: Callable[[str], Scope | None] = lambda _: None

    @property
    def reads_users(self) -> bool:
        """Return whether a decision depends on the user who creates the pod."""
        return any(exemption.concerns_users for each in self.policies for exemption in each.spec.exemptions)

    def decide(self, recorded: RecordedPod, namespace: str, user: str) -> Decision:
        """Return the decision on the creation of a pod."""
        scope = recorded.scope or self.scope_of(namespace)
        policy = self.policies.of_namespace(namespace, None if scope is None else scope.labels)
        request = pod_request(recorded.pod, namespace, user=user, groups=recorded.groups)
        if reason := not_a_pod_creation(request) or request_exemption(request, policy.spec):
            return _of_verdict(Bypassed(reason), recorded.pod, policy, has_view=False)
        content, view = PodContent(request, (scope or NO_SCOPE).annotations), self.view_of(policy)
        try:
            verdict = admit_content(content, policy, view, never)
        except InvalidInput as error:
            return Decision(policy.identity, INVALID, str(error))
        return _of_verdict(verdict, recorded.pod, policy, has_view=view is not None)


def _of_verdict(verdict: Verdict, pod: JsonObject, policy: Policy, *, has_view: bool) -> Decision:
    workload_type = verdict.workload_type or ""
    decision = Decision(policy.identity, verdict.outcome, workload_type=workload_type, warnings=verdict.warnings)
    if isinstance(verdict, Denied):
        placement = placement_of(verdict)
        placed = placement.verdict if placement is not None and has_view else ""
        return decision._replace(message=verdict.denial.message, verdict=placed)
    operations = verdict.operations
    try:
        scheduler, tolerations = _scheduling(independently_patched(pod, operations) if operations else pod)
    except TooDeepError:
        return decision._replace(outcome=INVALID, message="the pod is nested too deeply")
    decision = decision._replace(scheduler=scheduler, tolerations=tolerations)
    if isinstance(verdict, Bypassed):
        return decision._replace(message=verdict.reason)
    return decision._replace(
        rules={each.name: each.edits for each in verdict.rules if each.edits},
        verdict=verdict.placement.verdict if has_view else "",
        operations=tuple(_without_marks(operations, policy)),
    )


def _without_marks(operations: Iterable[JsonObject], policy: Policy) -> Iterator[JsonObject]:
    """Yield `operations` without the name and the rules of the policy, also in a new map of annotations."""
    marks = policy.policy_annotation, policy.rules_annotation
    pointers = [f"/metadata/annotations/{each.replace('/', '~1')}" for each in marks]
    for each in operations:
        if each["path"] == "/metadata/annotations":
            if others := {key: value for key, value in each["value"].items() if key not in marks}:
                yield {**each, "value": others}
        elif each["path"] not in pointers:
            yield each


def _scheduling(pod: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the scheduler and the tolerations of a pod. A bypassed pod can be malformed, because it is not checked."""
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return "", ()
    tolerations = spec.get("tolerations")
    found = [_shown(each) for each in tolerations if isinstance(each, Mapping)] if isinstance(tolerations, list) else []
    return str(spec.get("schedulerName") or DEFAULT_SCHEDULER), tuple(sorted(set(found)))


def _shown(toleration: Mapping[str, Any]) -> str:
    """Return a toleration in the format of `kubectl taint` for the tolerated taint. `*` means any value or effect."""
    key, effect = toleration.get("key") or "*", toleration.get("effect") or "*"
    value = "" if toleration.get("operator") == "Exists" else f"={toleration.get('value') or ''}"
    return f"{key}{value}:{effect}"


class Change(NamedTuple):
    """One difference: its kind and detail, such as `outcome`, `Patched → Denied`."""

    kind: Kind
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def changes(old: Decision, new: Decision) -> tuple[Change, ...]:
    """Return the differences in the order of `KINDS`, or none for equal decisions.

    The patches of a pod that is not created under one of the policies are not compared.
    """
    found = [
        *_of_values("outcome", old.outcome, new.outcome),
        *_of_values("verdict", old.verdict, new.verdict),
        *_of_values("workload type", old.workload_type, new.workload_type),
    ]
    if not (old.is_refused or new.is_refused):
        found += _of_values("scheduler", old.scheduler, new.scheduler)
        found += _of_rules(old, new)
        found += _of_sets("tolerations", old.tolerations, new.tolerations, "gained", "lost")
        found += (Change("fields", each) for each in _fields(old.operations, new.operations))
    elif old.outcome == new.outcome and old.message != new.message:
        found.append(Change("outcome", f"{new.outcome} for another reason: {_short(new.message)}"))
    found += _of_sets("warnings", old.warnings, new.warnings, "new", "gone")
    return tuple(found)


def has_worse_verdict(old: Decision, new: Decision) -> bool:
    """Return whether the new verdict is worse: a node can take the pod now, only later, or never."""
    return _WORSE.get(new.verdict, 0) > _WORSE.get(old.verdict, len(_WORSE))


def _of_values(kind: Kind, old: str, new: str) -> Iterator[Change]:
    if old != new:
        yield Change(kind, f"{_short(old) or '-'} → {_short(new) or '-'}")


def _of_rules(old: Decision, new: Decision) -> Iterator[Change]:
    for name in sorted(old.rules.keys() | new.rules.keys()):
        if name not in old.rules:
            yield Change("rules", f"{name} applies")
        elif name not in new.rules:
            yield Change("rules", f"{name} no longer applies")
        elif old.rules[name] != new.rules[name]:
            yield Change("rules", f"{name} makes other edits")


def _of_sets(kind: Kind, old: Iterable[str], new: Iterable[str], gained: str, lost: str) -> Iterator[Change]:
    before, after = set(old), set(new)
    yield from (Change(kind, f"{gained}: {_short(each)}") for each in sorted(after - before))
    yield from (Change(kind, f"{lost}: {_short(each)}") for each in sorted(before - after))


def _fields(old: Iterable[JsonObject], new: Iterable[JsonObject]) -> list[str]:
    """Return the fields that only one of the patches changes, or that they change differently."""
    before, after = (
        {orjson.dumps(each, option=orjson.OPT_SORT_KEYS): each["path"] for each in operations}
        for operations in (old, new)
    )
    paths = (path for text, path in (before | after).items() if (text in before) != (text in after))
    parts = {"/".join(path.split("/")[: _FIELD_DEPTH + 1]) for path in paths if not path.startswith(_OF_OTHER_KINDS)}
    return sorted({_short(field_path(each)) for each in parts})


def _short(text: str) -> str:
    return cut(printable(text.replace(BETWEEN_ERRORS, "; ")), _LONGEST_DETAIL)
