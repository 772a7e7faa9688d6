import gzip
import io
import json
import re
import resource
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from tests.support.programs.audit_records import INFEASIBLE, PATCH, at, chain_lines, make_record, write_lines
from tests.support.programs.command import Outcome, Run, run_here
from tests.support.work import calls_of
from webhook.audit.lines import digest
from webhook.audit.record import ReservedEntry, RuleEntry, ShadowEntry, parse_line
from webhook.cli.output.screen import Column, Row, print_table
from webhook.cli.records.audit_text import LIST_COLUMNS

RECORDS = [
    make_record(0, duration_ms=0.41),
    make_record(1, duration_ms=2.5, workload_type="inference", namespace="team-b", dry_run=True, placement=INFEASIBLE),
    make_record(
        2,
        duration_ms=0.2,
        outcome="Denied",
        error='metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainng"; supported values: …',
        workload_type=None,
        placement=None,
        patch=(),
        rules=(),
    ),
    make_record(
        3,
        duration_ms=0.1,
        outcome="Bypassed",
        error="no workload type",
        workload_type=None,
        placement=None,
        patch=(),
        rules=(),
        name="web-",
    ),
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `placement-webhook audit …` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return partial(run_here, "audit")


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The lines of audit.jsonl in the folder where commands run."""
    lines = chain_lines(RECORDS)
    write_lines(tmp_path / "audit.jsonl", lines)
    return lines


LIST = """\
TIME                  OUTCOME   TYPE       VERDICT     MS   POD              DECISION  NOTE
2026-05-01T08:00:00Z  Patched   training   Feasible    0.4  team-a/worker-0  d0000
2026-05-01T08:00:01Z  Patched   inference  Infeasible  2.5  team-b/worker-1  d0001     dry run
2026-05-01T08:00:02Z  Denied    -          -           0.2  team-a/worker-2  d0002     workload-type: Unsupported value: "trainng"; supported values: …
2026-05-01T08:00:03Z  Bypassed  -          -           0.1  team-a/web-      d0003     no workload type
"""  # noqa: E501 - as it is printed

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

SUMMARY = """\
4 records, 1 of them dry runs
from 2026-05-01T08:00:00Z to 2026-05-01T08:00:03Z
milliseconds: p50 0.200, p90 2.500, p99 2.500, max 2.500

OUTCOME   RECORDS
Patched   2
Bypassed  1
Denied    1

TYPE       RECORDS
(none)     2
inference  1
training   1

VERDICT     RECORDS
Feasible    1
Infeasible  1

USER                                              RECORDS
system:serviceaccount:kube-system:job-controller  4

NAMESPACE  RECORDS
team-a     3
team-b     1

POLICY          RECORDS
default@1a2b3c  4

DENIED BECAUSE OF                                                    RECORDS
metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value  1

BYPASSED BECAUSE OF  RECORDS
no workload type     1

RULE               PODS EDITED  EDITS  PODS SKIPPED
NodeUsageAffinity  2            4      0
BinPacking         0            0      2

SLOWEST MS  OUTCOME  POD              DECISION
2.500       Patched  team-b/worker-1  d0001
0.410       Patched  team-a/worker-0  d0000
"""

VERIFY = """\
intact: 3 records in 1 chain

files     audit.jsonl.1, audit.jsonl
replica   webhook-0
records   3, 2026-05-01T08:00:01Z to 2026-05-01T08:00:03Z
head      {hashes[3]}
note: audit.jsonl.1:1: the chain continues here: 1 record before it, not in these files
note: without a head, records cut off at the end cannot be detected: give one with --head
"""


class TestList:
    @pytest.mark.usefixtures("lines")
    def test_has_a_line_for_each_admission(self, run: Run) -> None:
        assert run("list") == Outcome(0, LIST, "")

    def test_shows_the_first_line_of_an_error(self, run: Run, tmp_path: Path) -> None:
        record = make_record(1, outcome="Denied", error="no such type\nmore about it")
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        listed = run("list").output
        assert "no such type" in listed
        assert "more about it" not in listed

    def test_as_json_has_the_records_as_they_stand(self, run: Run, lines: list[bytes]) -> None:
        ran = run("list", "-o", "json")
        assert ran == Outcome(0, "\n".join(line.decode() for line in lines) + "\n", "")

    @pytest.mark.parametrize(
        ("options", "decisions"),
        [
            (["--user", "system:serviceaccount:*"], ["d0000", "d0001", "d0002", "d0003"]),
            (["--user", "anna"], []),
            (["--verdict", "infeasible"], ["d0001"]),
            (["--policy", "default", "--verdict", "Feasible"], ["d0000"]),
            (["--policy", "default@1a2b"], ["d0000", "d0001", "d0002", "d0003"]),
            (["--policy", "default@ff"], []),
        ],
        ids=" ".join,
    )
    @pytest.mark.usefixtures("lines")
    def test_is_narrowed_by_its_options(self, run: Run, options: list[str], decisions: list[str]) -> None:
        out = run("list", "-o", "json", *options).output
        assert [orjson.loads(line)["decision"] for line in out.splitlines()] == decisions

    def test_reads_standard_input(self, run: Run) -> None:
        stdin = b"\n".join(chain_lines(RECORDS[:1]))
        assert "d0000" in run("list", "-", stdin=stdin).output

    def test_reads_the_rotated_files_where_none_are_named(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])
        assert run("list", "-o", "json").output.encode().splitlines() == lines
        assert run("list", "-o", "json", "audit.jsonl").output.encode().splitlines() == lines[2:]

    def test_of_an_empty_file_has_its_header(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "audit.jsonl").touch()
        ran = run("list")
        assert (ran.code, ran.output.split()) == (0, LIST.splitlines()[0].split())
        assert run("list", "-o", "json") == Outcome(0, "", "")

    def test_says_which_lines_are_no_records(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl", [b"{}", lines[0], *[b"\x1b[31mlog"] * 12])
        ran = run("list", "-o", "json")
        assert (ran.code, ran.output.encode()) == (0, lines[0] + b"\n")
        said = ran.errors.splitlines()
        assert said[0] == "warning: audit.jsonl:1: not an audit record, left out: time: Field required"
        assert said[1].startswith("warning: audit.jsonl:3: not an audit record, left out: Invalid JSON")
        assert said[-1] == "warning: 3 more lines are not audit records, left out"
        assert len(said) == 11


class TestShow:
    def test_prints_all_fields_of_an_admission(self, run: Run, lines: list[bytes]) -> None:
        assert run("show", "d0001") == Outcome(0, SHOW.format(hashes=[digest(line) for line in lines]), "")

    @pytest.mark.usefixtures("lines")
    def test_prints_why_a_pod_was_denied_and_omits_absent_fields(self, run: Run) -> None:
        out = run("show", "d0002").output
        assert 'Why        metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainng"; ' in out
        assert not any(title in out for title in ("Rules", "Patch (", "Placement"))

    def test_a_patch_that_does_not_fit_its_values_is_reported(self, run: Run, tmp_path: Path) -> None:
        operation = {"op": "frob", "path": "/spec/tolerations"}
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(patch=(operation,))]))

        out = run("show", "d0000").output

        assert "\n  ! the patch cannot be applied: " in out

    def test_the_client_of_a_verified_certificate_is_shown(self, run: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(client="kube-apiserver-1")]))

        assert "\nClient     kube-apiserver-1, by its certificate\n" in run("show", "d0000").output

    def test_as_json_has_the_record_as_it_stands(self, run: Run, lines: list[bytes]) -> None:
        assert run("show", "d0003", "-o", "json") == Outcome(0, lines[3].decode() + "\n", "")

    def test_takes_the_beginning_of_a_decision(self, run: Run, tmp_path: Path) -> None:
        write_lines(
            tmp_path / "audit.jsonl", chain_lines([make_record(1, decision="abc"), make_record(2, decision="b")])
        )
        assert run("show", "a").output.startswith("Decision   abc\n")

    @pytest.mark.usefixtures("lines")
    def test_of_a_beginning_that_several_have_names_them(self, run: Run) -> None:
        assert run("show", "d0") == Outcome(
            2,
            "",
            'Error: DECISION: Invalid value: "d0"; 4 records begin with it; add characters: '
            "d0000, d0001, d0002, d0003\n",
        )

    def test_lists_the_plugins_that_were_not_evaluated(self, run: Run, tmp_path: Path) -> None:
        placement = replace(INFEASIBLE, unmodelled=("DynamicResources", "VolumeBinding"))
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(1, placement=placement)]))
        assert "\n  not looked at: DynamicResources, VolumeBinding\n" in run("show", "d").output

    @pytest.mark.parametrize(
        ("pods", "said"),
        [(1, "1 pod that waits takes its place first"), (31, "31 pods that wait take their places first")],
    )
    def test_counts_the_pods_with_reserved_room(self, run: Run, tmp_path: Path, pods: int, said: str) -> None:
        placement = replace(INFEASIBLE, reserved=ReservedEntry(pods))
        write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(1, placement=placement)]))
        assert f"\n  {said}\n" in run("show", "d").output

    def test_folds_no_line(self, run: Run, tmp_path: Path) -> None:
        long = "word " * 100 + "end"
        record = make_record(0, outcome="Denied", error=long, warnings=(long,))
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        printed = run("show", "d0000").output.splitlines()
        assert f"Why        {long}" in printed
        assert f"  ! {long}" in printed

    def test_lists_the_truncated_places(self, run: Run, tmp_path: Path) -> None:
        record = make_record(1, user="x" * 2000, patch=PATCH * 1000)
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        (kept,) = (parse_line(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines())
        reported = f"  ! patch: {3000 - len(kept.patch)} more items\n  ! user: 976 more characters\n"
        assert f"\nLeft out of this record, as too large\n{reported}" in run("show", "d").output

    def test_of_a_whole_decision_that_begins_another_takes_the_whole(self, run: Run, tmp_path: Path) -> None:
        records = [make_record(1, decision="abc"), make_record(2, decision="ab")]
        write_lines(tmp_path / "audit.jsonl", chain_lines(records))
        assert run("show", "ab").output.startswith("Decision   ab\n")

    @pytest.mark.parametrize("decision", ["nope", ""])
    @pytest.mark.usefixtures("lines")
    def test_of_no_decision_says_so(self, run: Run, decision: str) -> None:
        ran = run("show", decision)
        assert (ran.code, ran.output) == (2, "")
        assert "no record has it; `audit list` lists the decisions" in ran.errors


def test_the_list_names_annotations_by_their_keys_without_the_domain(run: Run, tmp_path: Path) -> None:
    error = 'metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainning"'
    write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(0, outcome="Denied", error=error)]))
    assert run("list").output.rstrip().endswith('  workload-type: Unsupported value: "trainning"')


@pytest.mark.usefixtures("lines")
class TestSummary:
    def test_has_a_table_for_each_kind_of_count(self, run: Run) -> None:
        assert run("summary", "--slowest", "2") == Outcome(0, SUMMARY, "")

    def test_as_json_is_one_object(self, run: Run, lines: list[bytes]) -> None:
        ran = run("summary", "-", "-o", "json", stdin=lines[1])
        assert orjson.loads(ran.output) == {
            "total": 1,
            "dryRuns": 1,
            "first": at(1),
            "last": at(1),
            "workloadTypes": {"inference": 1},
            "outcomes": {"Patched": 1},
            "shadowed": {},
            "rules": {
                "NodeUsageAffinity": {"edited": 1, "edits": 2, "skipped": 0},
                "BinPacking": {"edited": 0, "edits": 0, "skipped": 1},
            },
            "refusals": {},
            "bypasses": {},
            "errors": {},
            "verdicts": {"Infeasible": 1},
            "users": {"system:serviceaccount:kube-system:job-controller": 1},
            "namespaces": {"team-b": 1},
            "omitted": {},
            "policies": {"default@1a2b3c": 1},
            "durationMs": {"p50": 2.5, "p90": 2.5, "p99": 2.5, "max": 2.5},
            "slowest": [{"decision": "d0001", "pod": "team-b/worker-1", "outcome": "Patched", "durationMs": 2.5}],
        }

    def test_of_nothing_says_so(self, run: Run) -> None:
        assert run("summary", "-", stdin=b"") == Outcome(0, "0 records\n", "")


OTHERS = {
    "a log": (b'{"level":"info"}\nnot JSON\n', '{"level":"info"}'),
    "text": (b"what is this", "what is this"),
    "bytes": (bytes(range(128, 256)), "\ufffd"),
}


class TestAnotherFile:
    """A file without a record is no audit log, in any command."""

    @pytest.mark.parametrize("name", OTHERS)
    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=" ".join)
    def test_is_refused(self, run: Run, tmp_path: Path, command: list[str], name: str) -> None:
        text, shown = OTHERS[name]
        (tmp_path / "other").write_bytes(text)
        ran = run(*command, "other")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith(f"Error: other: Invalid value: {json.dumps(shown, ensure_ascii=False)[:-1]}")
        assert ran.errors.endswith("; holds no audit record; give the file of `serve --audit`\n")

    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"]], ids=" ".join)
    def test_on_standard_input_is_refused_at_its_end(self, command: list[str]) -> None:
        ran = run_here("audit", *command, "-", stdin=OTHERS["a log"][0])
        assert ran.code == 2
        assert ran.errors.splitlines()[-1].endswith("; holds no audit record; give the output of `serve --audit`")

    def test_that_is_compressed_names_the_way_to_read_it(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(b"\n".join(lines)))
        ran = run("list", "audit.jsonl.1.gz")
        assert (ran.code, ran.output) == (2, "")
        assert "is compressed; pipe it: `zcat FILE | placement-webhook audit list -`" in ran.errors


class TestVerify:
    def test_prints_what_is_intact(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.1", lines[1:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])
        assert run("verify") == Outcome(0, VERIFY.format(hashes=[digest(line) for line in lines]), "")

    def test_as_json_is_one_object(self, run: Run, lines: list[bytes]) -> None:
        loaded = orjson.loads(run("verify", "-o", "json").output)
        assert (loaded["intact"], loaded["records"], loaded["faults"]) == (True, 4, [])
        assert loaded["chains"][0]["head"] == digest(lines[3])

    def test_of_a_broken_chain_exits_2_and_names_file_and_line(
        self, run: Run, tmp_path: Path, lines: list[bytes]
    ) -> None:
        write_lines(tmp_path / "audit.jsonl", [lines[0], lines[1].replace(b"team-b", b"team-x"), *lines[2:]])
        ran = run("verify")
        assert (ran.code, ran.output.splitlines()[0]) == (2, "4 records in 2 chains")
        assert ran.errors == (
            'Error: audit.jsonl:2: Invalid value: "d0001"; altered: its hash is not that of its content; '
            "compare with a copy, or find the decision in the API server's own audit log\n"
        )
        loaded = orjson.loads(run("verify", "-o", "json").output)
        assert (loaded["intact"], len(loaded["faults"])) == (False, 1)

    def test_detects_records_cut_off_by_a_noted_head(self, run: Run, lines: list[bytes]) -> None:
        assert run("verify", "--head", digest(lines[2])).code == 0
        ran = run("verify", "--head", "0" * 64)
        assert ran.code == 2
        assert f'Error: --head: Invalid value: "{"0" * 64}"; no record has this hash' in ran.errors

    def test_reads_standard_input(self, run: Run) -> None:
        stdin = b"".join(line + b"\n" for line in chain_lines(RECORDS))
        assert run("verify", "-", stdin=stdin).output.startswith("intact: 4 records in 1 chain\n")

    def test_of_an_empty_file_exits_2(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "audit.jsonl").touch()
        ran = run("verify")
        assert (ran.code, ran.output) == (2, "0 records in 0 chains\n")
        assert ran.errors.startswith(
            "Error: audit.jsonl: Required value: holds no records, so nothing can be verified; "
        )

    def test_of_a_cut_off_beginning_exits_2_unless_partial(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl", lines[1:])
        ran = run("verify")
        assert ran.code == 2
        assert "cut out: 1 record before this one; give all files, or --partial" in ran.errors
        assert run("verify", "--partial").code == 0

    def test_of_a_cut_off_end_exits_2_by_the_head_file(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"%020d %b" % (4, digest(lines[3]).encode())])
        assert run("verify", "audit.jsonl", "audit.jsonl.head").output.count("note") == 0
        write_lines(tmp_path / "audit.jsonl", lines[:3])
        for files in ([], ["audit.jsonl"], ["audit.jsonl", "audit.jsonl.head"]):
            ran = run("verify", *files)
            assert ran.code == 2
            assert ran.errors.startswith("Error: audit.jsonl.head: Invalid value: ")

    @pytest.mark.usefixtures("lines")
    @pytest.mark.parametrize("files", [[], ["audit.jsonl.1"], ["audit.jsonl.1", "audit.jsonl.head"]])
    def test_of_a_deleted_file_exits_2_by_the_head_file(
        self, run: Run, tmp_path: Path, lines: list[bytes], files: list[str]
    ) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"%020d %b" % (4, digest(lines[3]).encode())])
        write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        (tmp_path / "audit.jsonl").unlink()
        ran = run("verify", *files)
        assert ran.code == 2
        assert ran.errors.startswith(
            "Error: audit.jsonl: Required value: is gone or empty, but audit.jsonl.head counts 4 records, the last "
        )

    def test_of_a_broken_head_file_says_what_to_do(self, run: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"x"])
        ran = run("verify")
        assert ran.code == 2
        assert "audit.jsonl.head" in ran.errors
        assert "delete it to verify without it" in ran.errors

    @pytest.mark.usefixtures("lines")
    def test_alone_reads_head_files(self, run: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"x"])
        assert (run("verify").code, run("list").code) == (2, 0)

    def test_of_a_head_file_alone_asks_for_the_records(self, run: Run) -> None:
        assert "holds no records; name the audit file as well" in run("verify", "audit.jsonl.head").errors


@pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=lambda command: command[0])
class TestAnyCommand:
    def test_without_a_file_says_what_to_give(self, run: Run, command: list[str]) -> None:
        assert run(*command) == Outcome(
            2,
            "",
            "Error: FILE: Required value: there is no audit.jsonl in this folder; "
            "name audit files, or - for standard input\n",
        )

    def test_of_a_missing_file_names_it(self, run: Run, command: list[str]) -> None:
        ran = run(*command, "absent.jsonl")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: absent.jsonl: Invalid value: "No such file or directory"; ')

    def test_of_a_folder_names_it(self, run: Run, command: list[str]) -> None:
        ran = run(*command, ".")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: .: Invalid value: "Is a directory"; ')

    def test_has_help_with_examples(self, run: Run, command: list[str]) -> None:
        ran = run(command[0], "--help")
        assert ran.code == 0
        assert f"\n  placement-webhook audit {command[0]} " in ran.output


def test_a_time_that_is_none_exits_2_and_names_the_option(run: Run) -> None:
    ran = run("list", "--context", "c", "--since", "yesterday")
    assert ran.code == 2
    assert ran.errors.startswith('Error: --since: Invalid value: "yesterday"; must be a time such as ')


class TestExport:
    def test_prints_the_records_of_all_files_in_the_order_of_time(
        self, run: Run, tmp_path: Path, lines: list[bytes]
    ) -> None:
        others = chain_lines([make_record(number, replica="webhook-1") for number in (4, 5)])
        write_lines(tmp_path / "other.jsonl", others)
        write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])

        ran = run("export", "other.jsonl", "audit.jsonl", "audit.jsonl.1", "-o", "all.jsonl")

        assert (ran.code, ran.output, ran.errors) == (0, "", "")
        assert (tmp_path / "all.jsonl").read_bytes().splitlines() == [*lines, *others]
        assert run("verify", "all.jsonl").output.startswith("intact: 6 records in 2 chains\n")
        assert run("export", "all.jsonl").output.encode() == (tmp_path / "all.jsonl").read_bytes()

    def test_names_and_leaves_out_what_is_no_record(self, run: Run, tmp_path: Path, lines: list[bytes]) -> None:
        (tmp_path / "audit.jsonl").write_bytes(b"\n".join(lines)[:-100])

        ran = run("export", "audit.jsonl")

        assert ran.output.encode().splitlines() == lines[:3]
        assert ran.errors.startswith("warning: audit.jsonl:4: not an audit record, left out: ")

    @pytest.mark.usefixtures("lines")
    def test_leaves_nothing_on_a_full_disk(self, run: Run, tmp_path: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            ran = run("export", "audit.jsonl", "-o", "out.jsonl")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert (ran.code, [each.name for each in tmp_path.iterdir()]) == (2, ["audit.jsonl"])
        assert ran.errors.startswith("Error: --output: Invalid value")

    def test_reads_nothing_for_an_output_that_cannot_be_written(self, run: Run, tmp_path: Path) -> None:
        ran = run("export", "none.jsonl", "-o", tmp_path)

        assert ran.code == 2
        assert "--output" in ran.errors
        assert "Is a directory" in ran.errors


def test_work_grows_as_the_number_of_records_does(run: Run, tmp_path: Path) -> None:
    def read(count: int) -> None:
        assert len(run("list").output.splitlines()) == count + 1
        assert run("summary").output.startswith(f"{count} records\n")
        assert run("verify").output.startswith(f"intact: {count} records in 1 chain\n")

    def calls(count: int) -> int:
        write_lines(tmp_path / "audit.jsonl", chain_lines(make_record(number) for number in range(count)))
        return calls_of(lambda: read(count))

    calls(2)  # imports the commands
    assert calls(4000) < 2.2 * calls(2000)


class TestTerminal:
    EVIL = "pod\x1b]0;title\x07\u202e\n[red]name"

    def test_control_characters_are_escaped(self, run: Run, tmp_path: Path) -> None:
        record = make_record(1, name=self.EVIL, error=self.EVIL, warnings=(self.EVIL,), replica=self.EVIL)
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        for command in (["list"], ["show", "d"], ["summary"], ["verify"]):
            out = run(*command).output
            assert "\x1b" not in out
            assert "\u202e" not in out
        assert r"pod\x1b]0;title\x07\u202e\n[red]name" in run("list").output

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


def test_an_answer_that_was_not_given_is_listed_shown_and_counted(run: Run, tmp_path: Path) -> None:
    shadow = ShadowEntry(
        "Patched", (RuleEntry("SchedulerName", ("schedulerName volcano",)),), PATCH[2:], ("a warning",)
    )
    record = make_record(
        outcome="Bypassed", rules=(), patch=(), warnings=(), placement=None, error="shadow mode", shadow=shadow,
        before={"/spec/schedulerName": "default-scheduler"},
    )  # fmt: skip
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"".join(line + b"\n" for line in chain_lines([record])))

    assert "shadow mode, would be Patched" in run("list", log).output
    shown = run("show", record.decision, log).output
    for text in (
        "this would be the answer",
        "schedulerName volcano",
        "- default-scheduler",
        "+ volcano",
        "! a warning",
    ):
        assert text in shown
    assert "IN SHADOW MODE, WOULD BE" in run("summary", log).output
    assert orjson.loads(run("summary", "-o", "json", log).output)["shadowed"] == {"Patched": 1}
