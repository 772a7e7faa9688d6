"""The text of audit records: all fields of one, and columns on a terminal."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.programs.audit_records import FEASIBLE, INFEASIBLE, PATCH, chain_lines, make_record, write_lines
from tests.support.programs.command import Outcome, Run
from webhook.audit.chain import verify
from webhook.audit.lines import digest
from webhook.audit.reading import Entry
from webhook.audit.record import AuditRecord, Omitted, OmittedReason, ReservedEntry, ShadowEntry, parse_line
from webhook.audit.summary import Summary, summarise
from webhook.cli.output.screen import Column, Row, print_table
from webhook.cli.records.audit_text import LIST_COLUMNS, list_row, print_record, print_summary, print_verification
from webhook.documents.field import FieldError, required

SHOW = """\
Decision   d0001
Time       2026-05-01T08:00:01.000000Z, took 2.500 ms in replica webhook-0
Pod        team-b/worker-1, of Job worker
Request    CREATE (dry run) by system:serviceaccount:kube-system:job-controller, uid uid-1
Type       inference
Policy     default@1a2b3c
Outcome    Patched

Rules
  NodeUsageAffinity   require node usage In [training]
                      tolerate usage=training:NoSchedule
  BinPacking          skipped: the pod is already so

Patch (- before, + after)
  metadata.annotations[maip.mxsf.io/placement-policy]
    + default@1a2b3c
  spec.tolerations[+]
    + key: maip.mxsf.io/node.usage
    + operator: Exists
  spec.schedulerName
    - default-scheduler
    + volcano

Placement
  Infeasible: 0 of 12 nodes can take it
  0/12 nodes are available: 4 Insufficient nvidia.com/gpu, 8 node(s) had untolerated taint(s).

Warnings
  ! label jobtype=x of the pod wins

Record 2 of its chain, audit.jsonl:2
  hash      {hashes[1]}
  previous  {hashes[0]}
"""


class TestShow:
    def test_prints_all_fields_of_an_admission(self, audit: Run, lines: list[bytes]) -> None:
        assert audit("show", "d0001") == Outcome(0, SHOW.format(hashes=[digest(line) for line in lines]), "")

    @pytest.mark.usefixtures("lines")
    def test_prints_why_a_pod_was_denied_and_omits_absent_fields(self, audit: Run) -> None:
        out = audit("show", "d0002").output
        assert 'Why        metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainng"; ' in out
        assert not any(title in out for title in ("Rules", "Patch (", "Placement"))

    def test_a_patch_that_does_not_fit_its_values_is_reported(self, audit: Run, tmp_path: Path) -> None:
        operation = {"op": "frob", "path": "/spec/tolerations"}
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(patch=(operation,))]))

        out = audit("show", "d0000").output

        assert "\n  ! the patch cannot be applied: " in out

    def test_the_client_of_a_verified_certificate_is_shown(self, audit: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(client="kube-apiserver-1")]))

        assert "\nClient     kube-apiserver-1, by its certificate\n" in audit("show", "d0000").output

    def test_as_json_has_the_record_as_it_stands(self, audit: Run, lines: list[bytes]) -> None:
        assert audit("show", "d0003", "-o", "json") == Outcome(0, lines[3].decode() + "\n", "")

    def test_takes_the_beginning_of_a_decision(self, audit: Run, tmp_path: Path) -> None:
        write_lines(
            tmp_path / "audit.jsonl", chain_lines([make_record(1, decision="abc"), make_record(2, decision="b")])
        )
        assert audit("show", "a").output.startswith("Decision   abc\n")

    @pytest.mark.usefixtures("lines")
    def test_of_a_beginning_that_several_have_names_them(self, audit: Run) -> None:
        assert audit("show", "d0") == Outcome(
            2,
            "",
            'Error: DECISION: Invalid value: "d0"; 4 records begin with it; add characters: '
            "d0000, d0001, d0002, d0003\n",
        )

    def test_lists_the_plugins_that_were_not_evaluated(self, audit: Run, tmp_path: Path) -> None:
        placement = replace(INFEASIBLE, unmodelled=("DynamicResources", "VolumeBinding"))
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(1, placement=placement)]))
        assert "\n  not looked at: DynamicResources, VolumeBinding\n" in audit("show", "d").output

    @pytest.mark.parametrize(
        ("pods", "said"),
        [(1, "1 pod that waits takes its place first"), (31, "31 pods that wait take their places first")],
    )
    def test_counts_the_pods_with_reserved_room(self, audit: Run, tmp_path: Path, pods: int, said: str) -> None:
        placement = replace(INFEASIBLE, reserved=ReservedEntry(pods))
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(1, placement=placement)]))
        assert f"\n  {said}\n" in audit("show", "d").output

    def test_folds_no_line(self, audit: Run, tmp_path: Path) -> None:
        long = "word " * 100 + "end"
        record = make_record(0, outcome="Denied", error=long, warnings=(long,))
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        printed = audit("show", "d0000").output.splitlines()
        assert f"Why        {long}" in printed
        assert f"  ! {long}" in printed

    def test_lists_the_truncated_places(self, audit: Run, tmp_path: Path) -> None:
        record = make_record(1, user="x" * 2000, patch=PATCH * 1000)
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        (kept,) = (parse_line(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines())
        reported = f"  ! patch: {3000 - len(kept.patch)} more items\n  ! user: 976 more characters\n"
        assert f"\nLeft out of this record, as too large\n{reported}" in audit("show", "d").output

    def test_of_a_whole_decision_that_begins_another_takes_the_whole(self, audit: Run, tmp_path: Path) -> None:
        records = [make_record(1, decision="abc"), make_record(2, decision="ab")]
        write_lines(tmp_path / "audit.jsonl", chain_lines(records))
        assert audit("show", "ab").output.startswith("Decision   ab\n")

    @pytest.mark.parametrize("decision", ["nope", ""])
    @pytest.mark.usefixtures("lines")
    def test_of_no_decision_says_so(self, audit: Run, decision: str) -> None:
        ran = audit("show", decision)
        assert (ran.code, ran.output) == (2, "")
        assert "no record has it; `audit list` lists the decisions" in ran.errors


class TestTerminal:
    EVIL = "pod\x1b]0;title\x07\u202e\n[red]name"

    def test_control_characters_are_escaped(self, audit: Run, tmp_path: Path) -> None:
        record = make_record(1, name=self.EVIL, error=self.EVIL, warnings=(self.EVIL,), replica=self.EVIL)
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        for command in (["list"], ["show", "d"], ["summary"], ["verify"]):
            out = audit(*command).output
            assert "\x1b" not in out
            assert "\u202e" not in out
        assert r"pod\x1b]0;title\x07\u202e\n[red]name" in audit("list").output

    def test_has_colours_and_the_same_columns(self) -> None:
        columns, rows = LIST_COLUMNS[1:6:4], [Row(("Patched", "a"), "green"), Row(("Error", "b" * 20), "red")]
        plain, coloured = io.StringIO(), io.StringIO()
        print_table(Console(file=plain), columns, rows)
        print_table(Console(file=coloured, force_terminal=True, color_system="standard"), columns, rows)
        assert "\x1b[32mPatched" in coloured.getvalue()
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue()

    def test_columns_grow_with_later_rows(self) -> None:
        out = io.StringIO()
        print_table(Console(file=out), (Column("A"), Column("B")), [*[Row("ab")] * 1000, Row(("longer", "b"))])
        lines = out.getvalue().splitlines()
        assert (lines[0], lines[1000], lines[1001]) == ("A  B", "a  b", "longer  b")


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2026-05-01T08:00:04.123456Z", "2026-05-01T08:00:04Z"),
        ("2026-05-01T10:00:04.123456+02:00", "2026-05-01T10:00:04.123456+02:00"),
    ],
    ids=["UTC", "another zone"],
)
def test_a_time_is_shown_in_seconds_only_if_it_is_in_utc(time: str, shown: str) -> None:
    assert list_row(make_record(time=time)).cells[0] == shown


def printed(record: AuditRecord) -> str:
    """Return the text of `audit show` for the only record of its chain."""
    out = io.StringIO()
    (line,) = chain_lines([record])
    print_record(Console(file=out, width=200), Entry("f:1", line, parse_line(line)))
    return out.getvalue()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param(
            {"placement": FEASIBLE}, "  Feasible: 4 of 12 nodes can take it, best on node node-3\n", id="node"
        ),
        pytest.param({"user": "", "uid": ""}, "Request    CREATE by -, uid -\n", id="no user"),
        pytest.param({"kind": "Job", "owner": None}, "Object     Job team-a/worker-0\n", id="an object"),
        pytest.param({"policy": None, "workload_type": None}, "Type       -\nPolicy     -\n", id="no policy"),
        pytest.param({"error": "one;\ntwo"}, "Why        one;\nWhy        two\n", id="a line for each reason"),
        pytest.param(
            {"shadow": ShadowEntry("Denied", placement=INFEASIBLE, message="one;\ntwo")},
            "In shadow mode: this would be the answer\n  Denied\n  one;\n  two\n\n"
            "Its placement\n  Infeasible: 0 of 12 nodes can take it\n",
            id="the placement in shadow mode",
        ),
    ],
)
def test_a_record_is_shown_with(fields: dict[str, Any], text: str) -> None:
    assert text in printed(make_record(**fields))


def test_admissions_without_a_record_are_listed_and_shown_with_their_namespaces() -> None:
    omitted = Omitted("dryRun", 3, namespaces={"team-a": 2, "team-b": 1})
    record = make_record(omitted=omitted, error="3 dry runs have no record")

    assert list_row(record) == Row(
        ("2026-05-01T08:00:00Z", "Omitted", "-", "-", "-", "-", "d0000", "3 dry runs have no record"), "bold yellow"
    )
    assert printed(record).startswith(
        "Omitted    3 dry runs have no record\n"
        "Time       2026-05-01T08:00:00.000000Z, in replica webhook-0\n"
        "Namespace  team-a: 2\n"
        "Namespace  team-b: 1\n\n"
    )


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"kind": "Job", "dry_run": True, "error": "a;\nb"}, "Job, dry run, a;"),
        ({"error": "x" * 101}, "x" * 99 + "…"),
        ({}, ""),
    ],
)
def test_a_note_names_the_kind_and_the_first_reason(fields: dict[str, Any], note: str) -> None:
    assert list_row(make_record(**fields)).cells[-1] == note


def summary_text(summary: Summary) -> list[str]:
    out = io.StringIO()
    print_summary(Console(file=out, width=120), summary)
    return out.getvalue().splitlines()


def test_the_summary_has_the_ten_most_frequent_and_the_number_of_others() -> None:
    users = [make_record(number, user=f"user-{number:02}") for number in range(11)]

    lines = summary_text(summarise([*users, make_record(11, user="user-10", dry_run=True)], 0))

    assert lines[0] == "12 records, 1 of them dry runs"
    start = next(at for at, line in enumerate(lines) if line.startswith("USER"))
    assert [line.split()[0] for line in lines[start + 1 : start + 11]] == ["user-10", *(f"user-0{n}" for n in range(9))]
    assert lines[start + 11] == "and 1 more; -o json has all"


def test_the_summary_of_ten_leaves_none_out() -> None:
    lines = summary_text(summarise([make_record(number, user=f"user-{number:02}") for number in range(10)], 0))

    assert [line for line in lines if "more" in line] == []


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("unwritable", "2 admissions without a record in these files: it could not be written, and went to standard"),
        ("dryRun", "2 admissions without a record: dry runs beyond the share of a namespace"),
    ],
)
def test_the_summary_counts_admissions_without_a_record(reason: OmittedReason, text: str) -> None:
    lines = summary_text(summarise([make_record(omitted=Omitted(reason, 2))], 0))

    assert lines[0] == "0 records"
    assert lines[1].startswith(f"besides, {text}")


@pytest.mark.parametrize("faults", [[], [required("f", "is gone")]], ids=["intact", "broken"])
def test_chains_are_printed_only_for_an_intact_log_and_notes_always(faults: list[FieldError]) -> None:
    entries = [Entry("f:1", line, parse_line(line)) for line in chain_lines([make_record()])]
    found = replace(verify([("f", entries)]), notes=["a note"], faults=faults)
    out = io.StringIO()

    print_verification(Console(file=out, width=200), found)

    lines = out.getvalue().splitlines()
    assert lines[0] == ("1 record in 1 chain" if faults else "intact: 1 record in 1 chain")
    assert lines[-1] == "note: a note"
    assert any(line.startswith("head ") for line in lines) == (not faults)


def test_a_value_is_shown_on_one_line_in_its_own_letters(audit: Run, tmp_path: Path) -> None:
    words = " ".join(["größe"] * 40)
    operation = {"op": "add", "path": "/spec/tolerations", "value": [{"key": words}]}
    write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(patch=(operation,))]))

    assert f"key: {words}\n" in audit("show", "d0000").output


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, ", …")])
def test_of_many_decisions_with_one_beginning_five_are_named(audit: Run, tmp_path: Path, count: int, more: str) -> None:
    write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(number) for number in range(count)]))

    found = audit("show", "d").errors

    assert found.endswith(f"{count} records begin with it; add characters: d0000, d0001, d0002, d0003, d0004{more}\n")
