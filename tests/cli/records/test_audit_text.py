"""The text of audit records: all fields of one, and columns on a terminal."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.programs.audit_records import INFEASIBLE, PATCH, chain_lines, make_record, write_lines
from tests.support.programs.command import Outcome, Run
from webhook.audit.lines import digest
from webhook.audit.record import ReservedEntry, parse_line
from webhook.cli.output.screen import Column, Row, print_table
from webhook.cli.records.audit_text import LIST_COLUMNS, list_row

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
