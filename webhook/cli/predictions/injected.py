"""Find what the webhook has injected into a pod that is stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pod_content import PodContent
from webhook.cli.inputs.profiles import SchedulersOf
from webhook.cli.predictions.admission import Admissions, admit_document
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import BETWEEN_ERRORS, InvalidInput
from webhook.documents.listing import some
from webhook.kube.api.admission import pod_request
from webhook.mutation.workload.annotations import keys_without_type, stray_keys
from webhook.mutation.workload.card_request import ABOUT_CARDS
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy

ENDING = "it is being deleted: no scheduler gives it a node"
"""The reason why a pod without a node stays without one.

Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go skipPodSchedule
"""

# The parts of a pod that rules read and do not change.
_READ = ("containers", "initContainers", "volumes", "resources", "resourceClaims", "priorityClassName")

_MOST_FOREIGN = 3
# Names that no other project gives its keys.
_OWN_NAMES = frozenset(
    each.attribute.replace("_", "-")
    for each in (Keys.workload_type, *ABOUT_CARDS, Keys.bin_packing, Keys.gang_size, Keys.placement_check)
)


@dataclass(frozen=True, slots=True)
class Injected:
    """The policy and the rules that a stored pod names in its annotations; `policy` is empty if it names none.

    `edits` are the texts of each rule's edits, if that policy is `in_force`. A value of the user can have had
    precedence over such an edit. `in_force` is empty if the policy in force is not known.
    """

    policy: str
    rules: tuple[str, ...]
    edits: dict[str, tuple[str, ...]]
    in_force: str

    @property
    def is_by_policy_in_force(self) -> bool:
        """Return whether the fields were injected by the policy in force, and it is known."""
        return bool(self.policy) and self.policy == self.in_force

    @property
    def lines(self) -> Iterator[str]:
        """Yield the policy, and each rule with its edits."""
        if not self.policy:
            in_force = f"is {self.in_force}" if self.in_force else "in force is not known"
            yield f"nothing was injected; the policy {in_force}"
            return
        in_force = f"; in force now: {self.in_force or 'not known'}"
        yield f"injected by {self.policy}" + ("" if self.is_by_policy_in_force else in_force)
        for rule in self.rules:
            yield f"  {rule}"
            yield from (f"    {edit}" for edit in self.edits.get(rule, ()))

    def to_json(self) -> dict[str, Any]:
        """Return the value of `injected` in `explain -o json`."""
        rules = [{"name": each, "edits": list(self.edits.get(each, ()))} for each in self.rules]
        return {"policy": self.policy or None, "policyInForce": self.in_force or None, "rules": rules}


def injected(pod: JsonObject, policy: Policy, *, is_known: bool) -> Injected:
    """Return what was injected into a stored `pod`, whose namespace has `policy`.

    If not `is_known`, `policy` stands in for the one in force, unless the pod names it.
    """
    annotations = field(pod, "metadata", "annotations") or {}
    by = str(annotations.get(policy.policy_annotation) or "")
    rules = tuple(each for each in str(annotations.get(policy.rules_annotation) or "").split(",") if each)
    is_by_policy = by == policy.identity
    in_force = policy.identity if is_known or is_by_policy else ""
    return Injected(by, rules, _edits(pod, policy) if is_by_policy else {}, in_force)


def admissions_of(found: Injected, schedulers: SchedulersOf) -> Admissions:
    """Return the admissions that evaluate a stored pod with `found`.

    A pod that the policy in force has admitted is admitted unchanged, and its suggestions name annotations.
    """
    remedy = "create it again" if found.in_force else ""
    return Admissions(found.is_by_policy_in_force, schedulers, remedy, are_stored=True)


def is_being_deleted(pod: JsonObject) -> bool:
    """Return whether a stored `pod` is being deleted; see ENDING."""
    return field(pod, "metadata", "deletionTimestamp") is not None


def _edits(pod: JsonObject, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return the edits of each rule, computed for the pod without the fields that rules write."""
    marks = (policy.policy_annotation, policy.rules_annotation)
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("labels", "uid")}
    metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if key not in marks}
    bare = {**pod, "metadata": metadata, "spec": {key: pod["spec"][key] for key in _READ if key in pod["spec"]}}
    try:
        verdict = admit_document(Document("", bare), policy, None)
    except InvalidInput:
        return {}
    return {} if isinstance(verdict, Bypassed | Denied) else {each.name: each.edits for each in verdict.rules}


def stray_lines(pod: JsonObject, policy: Policy) -> Sequence[str]:
    """Return the warnings about labels and annotations of `pod` that look like annotations of the webhook."""
    annotations, labels = (field(pod, "metadata", each) or {} for each in ("annotations", "labels"))
    found = stray_keys(annotations, labels, policy)
    domain = policy.spec.key_domain
    # Admission is silent about these: other projects can have keys of the same name.
    others = [key for key in (*annotations, *labels) if key.partition("/")[2] in _OWN_NAMES]
    foreign = [key for key in others if not key.startswith(f"{domain}/") and key not in " ".join(found)]
    if foreign:
        found.append(f"keys of another domain have no effect: {some(foreign, _MOST_FOREIGN)}; those of {domain} do")
    return found


def left_alone(found: Injected, pod: JsonObject, policy: Policy, defaults: Mapping[str, str]) -> Iterator[str]:
    """Yield why `policy`, if it is in force, injects nothing into a stored `pod`: its type is missing, or it is denied.

    `defaults` are the annotations of its namespace.
    """
    if found.policy or not found.in_force or field(pod, "spec", "nodeName"):
        return
    try:
        result = evaluate(
            PodContent(pod_request(pod, str(field(pod, "metadata", "namespace") or "")), defaults), policy
        )
    except InvalidInput:
        return
    if isinstance(result, Denied):
        yield from (f"the policy denies it: {each}" for each in result.denial.message.split(BETWEEN_ERRORS))
    elif policy.keys.workload_type not in defaults:
        annotations = field(pod, "metadata", "annotations") or {}
        yield from () if policy.keys.workload_type in annotations else keys_without_type(annotations, policy)
