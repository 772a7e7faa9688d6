"""The policies in force, and the state of their source."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog

from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.policy.policy import Policy, Withheld
from webhook.policy.policy_set import PolicyOrSet, PolicySet, set_of
from webhook.policy.spec.admission import NamespaceSelector
from webhook.runtime.metrics import Metrics

BUILT_IN = "built-in"
ALL_OBJECTS = "*"
"""The name, for `reject_objects`, of all PlacementPolicies of the cluster."""

_REJECTED = "the newest policy is rejected and the last good one stays in force"
_REJECTED_WITHOUT_GOOD = "the newest policy is rejected and no earlier one is known"
_REGISTER = (
    "keyDomain or workloadKinds changed: run `placement-webhook certs register --policy` with this policy, "
    "because the API server calls by the rules of the previous one"
)
_MISSING = "a PlacementPolicy is rejected, and its last good generation is not known here"
_OVERRULED = "policy read, but a PlacementPolicy is in force instead"
MOST_ERRORS = 20
"""The most errors of a policy that are reported: clients read them."""

_INTERNAL_ERROR = "internal error: "


class Selection(NamedTuple):
    """The selector and the priority of a PlacementPolicy."""

    selector: NamespaceSelector
    priority: int


_NONE: Mapping[str, Selection] = {}


class Policies:
    """The policies in force. Not thread-safe; used in the thread of the event loop.

    A request reads `in_force` once and is decided by one policy of this set. `source` names the origin of `policy`.
    `now` returns the time in RFC 3339.
    """

    def __init__(self, policy: PolicyOrSet, metrics: Metrics, now: Callable[[], str], source: str = BUILT_IN) -> None:
        self.source = source
        self._metrics = metrics
        self._now = now
        self._log = structlog.get_logger()
        self._objects: tuple[Policy, ...] = ()
        self._never_valid: Mapping[str, Selection] = {}
        self._stand_ins: dict[tuple[str, str, Policy], Policy] = {}
        self._rejected_objects: dict[str, tuple[str, ...]] = {}
        self._missing_objects: dict[str, str] = {}
        self._followers: list[Callable[[Policy], None]] = []
        # The newest content of the source is not in force: the time in RFC 3339, and its errors.
        self._rejection: JsonObject | None = None
        self._file, self._loaded_at = set_of(policy), now()
        self._set = self._file
        self._show()
        self._warn_of_conflicts()

    def current(self) -> Policy:
        """Return the policy in force for namespaces that no other policy selects."""
        return self._set.default

    def in_force(self) -> PolicySet:
        """Return the policies in force for all namespaces."""
        return self._set

    def follow(self, follower: Callable[[Policy], None]) -> None:
        """Call `follower` after each change of the policies in force, with the default policy."""
        self._followers.append(follower)

    def replace(self, content: PolicyOrSet) -> None:
        """Put the validated policies of a file into force for all requests that are decided from now on.

        PlacementPolicies of the cluster stay in force instead of policies of the file with the same names.
        """
        before, self._file = self._file, set_of(content)
        policy, previous = self._file.default, before.default
        self._rejection = None
        self._show_rejections()
        if not self._choose():
            in_force = self._set.default.identity
            self._log.info(_OVERRULED, policy=policy.identity, in_force=in_force, source=self.source)
            return
        others = {"others": [each.identity for each in self._file.others]} if self._file.others else {}
        unregistered = [] if _registered(before) == _registered(self._file) else [policy]
        facts = {"policy": policy.identity, "previous": previous.identity, "source": self.source, **others}
        self._announce("policy applied", facts, unregistered)

    def put_objects(self, objects: Sequence[Policy], never_valid: Mapping[str, Selection] = _NONE) -> None:
        """Put the PlacementPolicies of the cluster into force. The one named `default` has precedence over the file.

        `never_valid` are the PlacementPolicies without a valid generation, by name. With `missingPolicy: deny`, pods in
        the namespaces that they select are denied.
        """
        self._objects, self._never_valid = tuple(objects), never_valid
        if not self._choose():
            return
        facts = {"default": self._set.default.identity, "others": [each.identity for each in self._set.others]}
        default = _registered(PolicySet(self._set.default))
        unregistered = [each for each in self._objects if _registered(PolicySet(each)) != default]
        self._announce("policies of the cluster applied", facts, unregistered)

    def _announce(self, event: str, facts: Mapping[str, object], unregistered: Iterable[Policy]) -> None:
        self._metrics.policy_reloads.labels("applied").inc()
        self._log.info(event, **facts)
        self._warn_of_conflicts()
        for each in unregistered:
            self._log.warning(_REGISTER, policy=each.identity)
        policy = self._set.default
        for follower in self._followers:
            try:
                follower(policy)
            except Exception:
                self._log.exception("a follower of the policy failed", policy=policy.identity)

    def _warn_of_conflicts(self) -> None:
        for warning in self._set.conflicts().values():
            self._log.warning("a PlacementPolicy is never in force", error=warning)

    def miss_objects(self, missing: Mapping[str, str]) -> None:
        """Record rejected PlacementPolicies, each with the revision in force that this replica does not know."""
        for name in missing.keys() - self._missing_objects.keys():
            self._log.error(_MISSING, policy=f"{name}@{missing[name]}", source=f"PlacementPolicy {name}")
        self._missing_objects = dict(missing)
        self._metrics.policies_missing.set(len(missing))

    def missing_reason(self) -> str:
        """Return a text about such a PlacementPolicy of `miss_objects` and its remedy, or ""."""
        for name, revision in self._missing_objects.items():
            error = next(iter(self._rejected_objects.get(name, ())), "")
            remedy = "it is judged again" if error.startswith(_INTERNAL_ERROR) else "correct or delete it"
            return (
                f"{name}@{revision} was in force and is not known here, because the newest content of PlacementPolicy "
                f"{name} is rejected: {remedy}; without that, this replica becomes ready after some minutes"
            )
        return ""

    def reject_objects(self, rejected: Mapping[str, tuple[str, ...]]) -> None:
        """Record the errors, by name, of all PlacementPolicies of the cluster that cannot be put into force."""
        for name, errors in rejected.items():
            if self._rejected_objects.get(name) != errors:
                self._metrics.policy_reloads.labels("rejected").inc()
                event, source = self._rejection_event(name), f"PlacementPolicy {name}"
                self._log.error(event, policy=name, source=source, errors=errors[:MOST_ERRORS])
        self._rejected_objects = dict(rejected)
        self._show_rejections()

    def _rejection_event(self, name: str) -> str:
        has_good = name == ALL_OBJECTS or any(each.name == name for each in self._objects)
        return _REJECTED if has_good else _REJECTED_WITHOUT_GOOD

    def reject(self, errors: Sequence[str]) -> None:
        """Record that the newest content of the source cannot be put into force."""
        shown = tuple(errors[:MOST_ERRORS])
        self._rejection = {"at": self._now(), "errors": shown}
        self._show_rejections()
        self._metrics.policy_reloads.labels("rejected").inc()
        self._log.error(_REJECTED, in_force=self._set.default.identity, source=self.source, errors=shown)

    def confirm(self) -> None:
        """Record that the newest content of the source is in force, after a rejection."""
        if self._rejection is not None:
            self._rejection = None
            self._show_rejections()
            self._log.info("the source holds its last good policy again", policy=self._file.default.identity)

    def note(self) -> str:
        """Return the first error of the newest content of the source, or "" if this content is in force."""
        if self._rejection:
            return f"{_REJECTED}: {self._rejection['errors'][0]}"
        for name, errors in self._rejected_objects.items():
            return f"{self._rejection_event(name)}: {errors[0]}"
        return ""

    def describe(self) -> JsonObject:
        """Return the policy in force, its source and the rejection, for people and scripts."""
        policy = self._set.default
        return {
            "name": policy.name,
            "revision": policy.revision,
            "source": self._source_of(policy),
            "loadedAt": self._loaded_at,
            "rejected": self._rejection,
            "policies": {key: _described(each, self._source_of(each)) for key, each in self._set.by_name().items()},
            "rejectedPolicies": self._rejected_objects,
            "missingPolicies": self._missing_objects,
            "policy": policy.document.model_dump(mode="json", by_alias=True),
        }

    def _choose(self) -> bool:
        """Put the known policies into force. Return whether they differ from the previous ones.

        These are the policies of the file, and the objects of the cluster, which replace policies of the same name.
        """
        before = self._set
        chosen = self._file.with_objects(self._objects)
        if self._never_valid and chosen.spec.missing_policy == "deny":
            chosen = PolicySet.of(chosen.default, (*self._denying(chosen.default), *chosen.others))
        # An equal set stays the same object, by which others notice a change.
        self._set = before if chosen == before else chosen
        if self._set.default is not before.default:
            self._loaded_at = self._now()
        self._show()
        return self._set is not before

    def _denying(self, default: Policy) -> Iterator[Policy]:
        """Yield a policy that denies every pod for each policy that was never valid."""
        before, self._stand_ins = self._stand_ins, {}
        for name, selection in self._never_valid.items():
            key = name, repr(selection), default
            self._stand_ins[key] = before.get(key) or _denying(name, selection, default)
        yield from self._stand_ins.values()

    def _source_of(self, policy: Policy) -> str:
        return f"PlacementPolicy {policy.name}" if policy in self._objects or policy.withheld else self.source

    def _show(self) -> None:
        self._metrics.policy.clear()
        for each in self._set:
            self._metrics.policy.labels(each.name, each.revision).set(1)

    def _show_rejections(self) -> None:
        self._metrics.policy_rejected.set(1 if self._rejection or self._rejected_objects else 0)


def _denying(name: str, selection: Selection, default: Policy) -> Policy:
    reason = f"PlacementPolicy {name}, which applies to the namespace, is rejected, and no earlier generation is known"
    return default.withheld_as(Withheld("deny", reason), name).selected_by(*selection)


def _described(policy: Policy, source: str) -> JsonObject:
    selector = policy.spec.namespace_selector
    return {
        "revision": policy.revision,
        "source": source,
        "priority": policy.spec.priority,
        "namespaceSelector": selector.model_dump(mode="json", by_alias=True) if selector else None,
    }


def errors_of(error: Exception) -> tuple[str, ...]:
    """Return the errors of a policy that could not be read."""
    if isinstance(error, InvalidInput):
        return tuple(map(str, error.errors))
    return (f"{_INTERNAL_ERROR}{error!r}",)


def _registered(policies: PolicySet) -> tuple[frozenset[str], frozenset[WorkloadKind]]:
    domains = frozenset(each.spec.key_domain for each in policies)
    return domains, frozenset(kind for each in policies for kind in each.kinds.values())
