"""What differs between two decisions on one pod."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import orjson

from webhook.admission.pod_content import JsonObject
from webhook.analysis.replay.decision import Decision
from webhook.audit.field_changes import field_path
from webhook.documents.text import cut, printable

Kind = Literal["outcome", "verdict", "workload type", "scheduler", "rules", "tolerations", "fields", "warnings"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of changes, the most important first."""

_LONGEST_DETAIL = 300
_FIELD_DEPTH = 4
# They are reported as such.
_OF_OTHER_KINDS = ("/spec/tolerations", "/spec/schedulerName")
_WORSE = {"Feasible": 0, "Waiting": 1, "Infeasible": 2}


class Change(NamedTuple):
    """One thing that differs, such as `outcome`, `Patched → Denied`."""

    kind: Kind
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def changes(old: Decision, new: Decision) -> tuple[Change, ...]:
    """Return what differs, in the order of `KINDS`; nothing for equal decisions.

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


def is_newly_refused(old: Decision, new: Decision) -> bool:
    """Return whether only the new policy refuses the pod."""
    return new.is_refused and not old.is_refused


def has_worse_verdict(old: Decision, new: Decision) -> bool:
    """Return whether fewer nodes could take the pod, by the verdicts on it: now, later or never."""
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
    return cut(printable(text), _LONGEST_DETAIL)
