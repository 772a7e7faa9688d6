"""Decide on many admissions by two policies, and count the differences."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from placement_planner.replay.admission import Admission
from placement_planner.replay.decision import KINDS, Change, Decider, Decision, changes, has_worse_verdict
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.missed import Scope
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.runtime.byte_cache import ByteCache

OTHERS = "others"
"""Stands for the changes, owners and namespaces that are not counted one by one."""

_MEMO_BYTES = 64 * 1024 * 1024
_MOST_CHANGES = 1000
_MOST_NAMES = 1000
_MOST_EXAMPLES = 3
# Two decisions with their changes, without texts.
_ENTRY_BYTES = 4096


class Difference(NamedTuple):
    """An admission on which the two policies decide differently.

    `is_first` is true if no equal difference was seen before.
    """

    admission: Admission
    old: Decision
    new: Decision
    changes: tuple[Change, ...]
    is_first: bool

    def to_json(self) -> JsonObject:
        """Return the difference as `replay -o json` prints it."""
        asked = self.admission
        return {
            "pod": asked.pod,
            "owner": asked.owner or None,
            "user": asked.user or None,
            "time": asked.time or None,
            "place": asked.place or None,
            "changes": [{"kind": each.kind, "detail": each.detail} for each in self.changes],
            "old": self.old.to_json(),
            "new": self.new.to_json(),
        }


@dataclass(slots=True)
class Tally:
    """The pods with one change: their number in total and by owner and namespace, and the first pods."""

    pods: int = 0
    owners: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    examples: list[Admission] = field(default_factory=list)

    def add(self, admission: Admission) -> None:
        """Count a pod. Names beyond a limit are counted together."""
        self.pods += 1
        owner = f"{admission.namespace}/{admission.owner}" if admission.owner else admission.pod
        for counts, name in ((self.owners, owner), (self.namespaces, admission.namespace)):
            _count(counts, name)
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(admission)


@dataclass(slots=True)
class Report:
    """The result of a replay: `pods` were decided on, and `changed` of them differently.

    `refused` is the number of pods that only the new policy refuses, and `worse` the number with a worse verdict.
    `left_out` counts, by reason, the inputs that could not be decided on. `policies` counts the recorded policies.
    """

    pods: int = 0
    changed: int = 0
    refused: int = 0
    worse: int = 0
    tallies: dict[Change, Tally] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    policies: Counter[str] = field(default_factory=Counter)

    def sorted_tallies(self) -> list[tuple[Change, Tally]]:
        """Return the changes in the order of their kinds, the most frequent of each kind first."""
        return sorted(self.tallies.items(), key=lambda item: (KINDS.index(item[0].kind), -item[1].pods, item[0].detail))

    def count(self, found: Difference) -> None:
        """Count a difference."""
        self.changed += 1
        self.refused += found.new.is_refused and not found.old.is_refused
        self.worse += has_worse_verdict(found.old, found.new)
        for each in found.changes:
            key = each if each in self.tallies or len(self.tallies) < _MOST_CHANGES else Change(each.kind, OTHERS)
            self.tallies.setdefault(key, Tally()).add(found.admission)


def _count(counts: Counter[str], name: str) -> None:
    counts[name if name in counts or len(counts) < _MOST_NAMES else OTHERS] += 1


class _Known(NamedTuple):
    old: Decision
    new: Decision
    changes: tuple[Change, ...]


_EQUAL = _Known(Decision("", ""), Decision("", ""), ())


class Replay:
    """Decides by two sets of policies, and caches the decisions on equal pods.

    With `snapshot`, each pod is also placed on it, as if no other pod were created.
    """

    def __init__(self, new: PolicySet, against: PolicySet, snapshot: Snapshot | None = None) -> None:
        self.report = Report()

        @cache
        def view_of(policy: Policy) -> ClusterView | None:
            return None if snapshot is None else ClusterView(snapshot, scheduler_for(policy))

        def scope_of(name: str) -> Scope | None:
            known = snapshot.namespaces.get(name) if snapshot is not None else None
            return None if known is None else Scope(known.annotations, known.labels)

        self._old, self._new = (Decider(each, view_of, scope_of) for each in (against, new))
        self._reads_users = self._old.reads_users or self._new.reads_users
        self._memo: ByteCache[tuple[str, bytes, str], _Known] = ByteCache(_MEMO_BYTES)

    def add(self, admission: Admission) -> Difference | None:
        """Decide on an admission, count it, and return the difference, or None if there is none.

        Raises:
            InvalidInput: the pod of the admission cannot be read.
        """
        report = self.report
        report.pods += 1
        if admission.policy:
            _count(report.policies, admission.policy)
        key = admission.namespace, admission.key, admission.user if self._reads_users else ""
        known = self._memo.get(key) if admission.key else None
        is_first = known is None
        if known is None:
            known = self._decided(admission)
            if admission.key:
                self._memo.put(key, known, _size_bytes(known))
        if not known.changes:
            return None
        found = Difference(admission, *known, is_first)
        report.count(found)
        return found

    def _decided(self, admission: Admission) -> _Known:
        recorded = admission.read()
        old, new = (each.decide(recorded, admission.namespace, admission.user) for each in (self._old, self._new))
        found = changes(old, new)
        # Most decisions are equal, and nothing of them is shown.
        return _Known(old, new, found) if found else _EQUAL


def _size_bytes(known: _Known) -> int:
    if known is _EQUAL:
        return 0
    texts = (each.message + "".join(each.warnings) + "".join(map(str, each.operations)) for each in known[:2])
    return _ENTRY_BYTES + 2 * sum(map(len, texts))
