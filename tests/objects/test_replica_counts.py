"""The texts about how many replicas of each role of an object fit."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from webhook.cluster.snapshot import Snapshot
from webhook.objects.gangs import Placed
from webhook.objects.replica_counts import counts, fitting, next_replica
from webhook.placement.framework.result import Placement
from webhook.placement.replicas.replicas import Replicas

NOTHING = Snapshot.of(())


def placed(role: str, fits: int, asked: int, *, is_complete: bool = True, suspended: str = "") -> Placed:
    found = Replicas(asked, fits, {}, Placement.unknown(""), None, is_complete, NOTHING)
    pods = SimpleNamespace(role=role, suspended=suspended)
    return Placed(cast("Any", SimpleNamespace(pods=pods)), found, NOTHING)


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        (2, "a 0 of 3, b 1 of 3 replicas fit now"),
        (4, "a 0 of 3, b 1 of 3, c 2 of 3, d 3 of 3 replicas fit now"),
        (5, "10 of 15 replicas of 5 roles fit now"),
    ],
)
@pytest.mark.parametrize("incomplete", [None, 0, 1])
def test_more_than_four_roles_are_summed_up_and_the_numbers_are_the_least_if_one_is(
    roles: int, text: str, incomplete: int | None
) -> None:
    each = [placed("abcde"[n], n, 3, is_complete=n != incomplete) for n in range(roles)]

    assert counts(each) == ("" if incomplete is None else "at least ") + text


def test_counts_of_a_suspended_object_begin_with_the_field_and_a_role_without_a_name_is_its_pods() -> None:
    assert counts([placed("", 1, 2, suspended="spec.suspend"), placed("b" * 30, 2, 2)]) == (
        f"no pods are created while spec.suspend is set; pods 1 of 2, {'b' * 23}… 2 of 2 replicas fit now"
    )


@pytest.mark.parametrize("reports_always", [True, False])
@pytest.mark.parametrize(
    ("fits", "is_complete", "end"),
    [
        ((3, 2), True, ""),
        ((5, 4), True, ""),
        ((3, 1), False, None),
        ((3, 2), False, "; the others were not checked"),
        ((4, 2), False, "; the others were not checked"),
    ],
)
def test_pods_beyond_the_limit_are_not_checked(
    fits: tuple[int, int], is_complete: bool, end: str | None, *, reports_always: bool
) -> None:
    """The limit is five replicas of all roles together. Fewer are not known for another reason, which is no warning."""
    each = [placed("a", fits[0], 9, is_complete=True), placed("b", fits[1], 9, is_complete=is_complete)]

    advice = fitting(each, 5, reports_always=reports_always)

    least = "" if is_complete else "at least "
    text = f"placement check: {least}a {fits[0]} of 9, b {fits[1]} of 9 replicas fit now"
    has_warning = reports_always if is_complete else end is not None
    assert advice.warnings == ((f"{text}{end or ''}",) if has_warning else ())
    assert advice.placement.verdict == "Unknown"


@pytest.mark.parametrize(
    ("role", "fits", "roles", "text"),
    [
        ("", 0, 1, "the first: "),
        ("a", 0, 1, "the first: "),
        ("a", 1, 1, "the next: "),
        ("a", 0, 2, "the first a: "),
        ("a", 2, 2, "the next a: "),
        ("", 2, 2, "the next pod: "),
    ],
)
def test_the_replica_that_does_not_fit_is_the_first_or_the_next_of_its_role(
    role: str, fits: int, roles: int, text: str
) -> None:
    assert next_replica(placed(role, fits, 3), roles) == text
