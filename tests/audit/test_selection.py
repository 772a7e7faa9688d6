"""The records that options select."""

import time
from datetime import UTC, datetime

import pytest

from tests.support.programs.audit_records import make_record
from webhook.audit.selection import Selection, is_of_pod, parse_moment

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), True),
        (Selection(users=("other", "system:serviceaccount:*")), True),
        (Selection(users=("system",)), False),
        (Selection(verdicts=("Feasible",)), True),
        (Selection(verdicts=("Waiting", "Infeasible")), False),
        (Selection(policies=("default",)), True),
        (Selection(policies=("default@1a2b",)), True),
        (Selection(policies=("default@2b",)), False),
        (Selection(verdicts=("Feasible",), policies=("other",)), False),
    ],
)
def test_a_selection_takes_what_meets_every_choice(selection: Selection, taken: bool) -> None:
    assert selection.matches(make_record(0)) == taken


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), True),
        (Selection(users=("*",)), True),
        (Selection(users=("?*",)), False),
        (Selection(verdicts=("Feasible", "Infeasible", "Waiting", "Unknown")), False),
        (Selection(policies=("default",)), False),
        (Selection(policies=("",)), False),
    ],
)
def test_a_record_without_a_placement_a_policy_or_a_user_has_none_of_the_selected_ones(
    selection: Selection, taken: bool
) -> None:
    assert selection.matches(make_record(0, placement=None, policy=None, user="")) == taken


@pytest.mark.parametrize(
    ("pod", "name", "taken"),
    [
        ("team-a/worker-0", "worker-0", True),
        ("team-a/worker", "worker-0", False),
        ("team-b/worker-0", "worker-0", False),
        ("team-a/worker-x7k2p", "worker-", True),
        ("team-b/worker-x7k2p", "worker-", False),
        ("team-a/worker-x7k2p-y", "worker-", False),
        ("team-a/other-x7k2p", "worker-", False),
        ("team-a/worker-0", "worker-", False),
        (f"team-a/{'w' * 57}-x7k2p", f"{'w' * 57}-", True),
        (f"team-a/{'w' * 58}x7k2p", f"{'w' * 58}-", True),
        (f"team-a/{'w' * 58}x7k2p", f"{'w' * 70}-", True),
        (f"team-a/{'w' * 70}-x7k2p", f"{'w' * 70}-", False),
        (f"team-a/{'w' * 58}x7k2p", "w" * 70, False),
        (f"team-a/{'w' * 70}", "w" * 70, True),
    ],
)
def test_a_record_is_of_a_pod_by_its_name_or_what_that_was_generated_from(pod: str, name: str, taken: bool) -> None:
    assert is_of_pod(make_record(0, name=name), pod) == taken


@pytest.mark.parametrize("zone", ["UTC", "XXX-8", "XXX5"])
def test_a_time_without_a_zone_is_in_utc_wherever_the_command_runs(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        found = [
            parse_moment(text, NOON, "--since") for text in ("2026-05-01T08:00:00", "2026-05-01T08:00:00+00:00", "4h")
        ]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found == [datetime(2026, 5, 1, 8, tzinfo=UTC)] * 3
