"""How a replay shows two decisions on one pod."""

from collections import Counter

import pytest

from placement_planner.replay.admission import admission_of
from placement_planner.replay.decision import Change, Decision
from placement_planner.replay.policy_comparison import Difference, Report, Tally
from placement_planner.replay_text import print_notes, print_patches, print_report
from tests.support.admission import policy_with
from tests.support.objects.builders import make_pod
from webhook.policy.policy_set import PolicySet

OLD, NEW = (PolicySet(policy_with(keyDomain=domain)) for domain in ("old.example.com", "new.example.com"))


def test_the_lines_of_two_decisions_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    old = Decision("default@a", "Patched", "", warnings=("w",), verdict="Feasible", operations=({"op": "add"},))
    new = Decision("default@b", "Denied", "no;\nand no")
    admission = admission_of(make_pod("p").obj(), "lab", name="p")
    print_patches(Difference(admission, old, new, (), is_first=True))

    assert capsys.readouterr().out.splitlines() == [
        "--- lab/p (default@a)",
        "+++ lab/p (default@b)",
        "@@ -1,4 +1,3 @@",
        "-outcome: Patched",
        "-verdict: Feasible",
        "-warning: w",
        '-{"op":"add"}',
        "+outcome: Denied",
        "+message: no",
        "+message: and no",
    ]


def tally(pods: int, place: str = "", **owners: int) -> Tally:
    example = admission_of(make_pod("p").obj(), "lab", name="p", place=place)
    return Tally(pods, Counter(owners), Counter({"lab": pods}), [example])


def printed(report: Report, sources: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_report(report, NEW, OLD, sources)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("pods", "sources", "begin"),
    [(1, 0, "1 pod, by "), (2, 1, "2 pods of 1 source, by "), (0, 2, "0 pods of 2 sources")],
)
def test_a_report_begins_with_its_pods_and_the_old_policy_before_the_new_one(
    pods: int, sources: int, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = printed(Report(pods), sources, capsys)

    assert first.startswith(begin)
    assert first.endswith(f", by {OLD.default.identity} and by {NEW.default.identity}")
    assert others == ["no pod would be decided otherwise"]


def test_a_change_has_its_pods_its_most_frequent_owner_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    tallies = {
        Change("rules", "A applies"): tally(9, a=2, b=4, c=3),
        Change("outcome", "Patched → Denied"): tally(2, "audit.jsonl:7", a=1, b=1),
        Change("rules", "B applies"): tally(1, a=1),
    }
    lines = printed(Report(12, 10, 2, tallies=tallies), 0, capsys)

    assert lines[1:3] == ["10 would be decided otherwise, 2 of them refused", ""]
    assert [" ".join(line.split()) for line in lines[4:]] == [
        "outcome: Patched → Denied 2 a (1) and 1 more lab (2) lab/p (audit.jsonl:7)",
        "rules: A applies 9 b (4) and 2 more lab (9) lab/p",
        "rules: B applies 1 a (1) lab (1) lab/p",
    ]


@pytest.mark.parametrize(("changes", "last"), [(200, None), (201, 1), (205, 5)])
def test_the_text_has_the_first_two_hundred_changes(
    changes: int, last: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    tallies = {Change("rules", f"{number:03} applies"): tally(1, a=1) for number in range(changes)}
    lines = printed(Report(1, 1, tallies=tallies), 0, capsys)

    assert lines[3:][200].startswith("rules: 199 applies")
    assert lines[3:][201:] == ([] if last is None else [f"and {last} more changes; -o json has all"])


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize(("invalid", "lines"), [(0, []), (1, ["1 line"]), (3, ["3 lines"])])
def test_notes_name_what_was_left_out_and_other_policies_than_the_old_one(
    is_text: bool, invalid: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy is known by its revision, whatever its name."""
    own = OLD.default.revision
    known = {f"renamed@{own}": 9, OLD.default.identity: 9}
    report = Report(5, 3, 1, left_out=Counter({"dry run": 1, "update": 4}), policies=Counter(known))

    print_notes(report, OLD, invalid, is_text=is_text)
    plain = capsys.readouterr()
    report.policies.update({"a@1": 1, "b@2": 5, "c@3": 2, f"{own}@4": 1})
    print_notes(report, OLD, invalid, is_text=is_text)

    assert plain.out == ""
    assert plain.err.splitlines() == [
        *([] if is_text else ["5 pods: 3 otherwise, 1 refused"]),
        "left out: 4 × update",
        "left out: 1 × dry run",
        *(f"left out: {each} that cannot be read" for each in lines),
    ]
    assert capsys.readouterr().err.splitlines()[-1] == (
        "note: 9 pods were admitted by other policies than --against: b@2 (5), c@3 (2) and 2 more"
    )
