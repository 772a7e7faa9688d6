import resource
from pathlib import Path

import orjson
import pytest

from tests.cli.records.sample_records import RECORDS
from tests.support.programs.audit_records import PATCH, at, chain_lines, make_record, write_lines
from tests.support.programs.command import Outcome, Run
from tests.support.work import calls_of
from webhook.audit.lines import digest
from webhook.audit.record import RuleEntry, ShadowEntry

LIST = """\
TIME                  OUTCOME   TYPE       VERDICT     MS   POD              DECISION  NOTE
2026-05-01T08:00:00Z  Patched   training   Feasible    0.4  team-a/worker-0  d0000
2026-05-01T08:00:01Z  Patched   inference  Infeasible  2.5  team-b/worker-1  d0001     dry run
2026-05-01T08:00:02Z  Denied    -          -           0.2  team-a/worker-2  d0002     workload-type: Unsupported value: "trainng"; supported values: …
2026-05-01T08:00:03Z  Bypassed  -          -           0.1  team-a/web-      d0003     no workload type
"""  # noqa: E501 - as it is printed
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
    def test_has_a_line_for_each_admission(self, audit: Run) -> None:
        assert audit("list") == Outcome(0, LIST, "")

    def test_shows_the_first_line_of_an_error(self, audit: Run, tmp_path: Path) -> None:
        record = make_record(1, outcome="Denied", error="no such type\nmore about it")
        write_lines(tmp_path / "audit.jsonl", chain_lines([record]))
        listed = audit("list").output
        assert "no such type" in listed
        assert "more about it" not in listed

    def test_as_json_has_the_records_as_they_stand(self, audit: Run, lines: list[bytes]) -> None:
        ran = audit("list", "-o", "json")
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
    def test_is_narrowed_by_its_options(self, audit: Run, options: list[str], decisions: list[str]) -> None:
        out = audit("list", "-o", "json", *options).output
        assert [orjson.loads(line)["decision"] for line in out.splitlines()] == decisions

    @pytest.mark.usefixtures("lines")
    def test_prints_the_header_and_a_note_if_no_record_is_selected(self, audit: Run) -> None:
        note = "no record that was read is selected\n"
        assert audit("list", "--user", "anna") == Outcome(0, "  ".join(LIST.splitlines()[0].split()) + "\n", note)
        assert audit("list", "--user", "anna", "-o", "json") == Outcome(0, "", "")
        assert audit("list", "--verdict", "Feasible").errors == ""

    def test_reads_standard_input(self, audit: Run) -> None:
        stdin = b"\n".join(chain_lines(RECORDS[:1]))
        assert "d0000" in audit("list", "-", stdin=stdin).output

    def test_reads_the_rotated_files_where_none_are_named(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])
        assert audit("list", "-o", "json").output.encode().splitlines() == lines
        assert audit("list", "-o", "json", "audit.jsonl").output.encode().splitlines() == lines[2:]

    def test_of_an_empty_file_has_its_header(self, audit: Run, tmp_path: Path) -> None:
        (tmp_path / "audit.jsonl").touch()
        ran = audit("list")
        assert (ran.code, ran.output.split(), ran.errors) == (0, LIST.splitlines()[0].split(), "")
        assert audit("list", "-o", "json") == Outcome(0, "", "")

    def test_says_which_lines_are_no_records(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl", [b"{}", lines[0], *[b"\x1b[31mlog"] * 12])
        ran = audit("list", "-o", "json")
        assert (ran.code, ran.output.encode()) == (0, lines[0] + b"\n")
        said = ran.errors.splitlines()
        assert said[0] == "warning: audit.jsonl:1: not an audit record, left out: time: Field required"
        assert said[1].startswith("warning: audit.jsonl:3: not an audit record, left out: Invalid JSON")
        assert said[-1] == "warning: 3 more lines are not audit records, left out"
        assert len(said) == 11


def test_the_list_names_annotations_by_their_keys_without_the_domain(audit: Run, tmp_path: Path) -> None:
    error = 'metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainning"'
    write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(0, outcome="Denied", error=error)]))
    assert audit("list").output.rstrip().endswith('  workload-type: Unsupported value: "trainning"')


@pytest.mark.usefixtures("lines")
class TestSummary:
    def test_has_a_table_for_each_kind_of_count(self, audit: Run) -> None:
        assert audit("summary", "--slowest", "2") == Outcome(0, SUMMARY, "")

    def test_has_no_table_of_the_slowest_if_none_are_asked_for(self, audit: Run) -> None:
        assert audit("summary", "--slowest", "0") == Outcome(0, SUMMARY.partition("\nSLOWEST MS")[0], "")

    def test_as_json_is_one_object(self, audit: Run, lines: list[bytes]) -> None:
        ran = audit("summary", "-", "-o", "json", stdin=lines[1])
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

    def test_of_nothing_says_so(self, audit: Run) -> None:
        assert audit("summary", "-", stdin=b"") == Outcome(0, "0 records\n", "")


class TestVerify:
    def test_prints_what_is_intact(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.1", lines[1:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])
        assert audit("verify") == Outcome(0, VERIFY.format(hashes=[digest(line) for line in lines]), "")

    def test_as_json_is_one_object(self, audit: Run, lines: list[bytes]) -> None:
        loaded = orjson.loads(audit("verify", "-o", "json").output)
        assert (loaded["intact"], loaded["records"], loaded["faults"]) == (True, 4, [])
        assert loaded["chains"][0]["head"] == digest(lines[3])

    def test_of_a_broken_chain_exits_2_and_names_file_and_line(
        self, audit: Run, tmp_path: Path, lines: list[bytes]
    ) -> None:
        write_lines(tmp_path / "audit.jsonl", [lines[0], lines[1].replace(b"team-b", b"team-x"), *lines[2:]])
        ran = audit("verify")
        assert (ran.code, ran.output.splitlines()[0]) == (2, "4 records in 2 chains")
        assert ran.errors == (
            'Error: audit.jsonl:2: Invalid value: "d0001"; altered: its hash is not that of its content; '
            "compare with a copy, or find the decision in the API server's own audit log\n"
        )
        loaded = orjson.loads(audit("verify", "-o", "json").output)
        assert (loaded["intact"], len(loaded["faults"])) == (False, 1)

    def test_detects_records_cut_off_by_a_noted_head(self, audit: Run, lines: list[bytes]) -> None:
        assert audit("verify", "--head", digest(lines[2])).code == 0
        ran = audit("verify", "--head", "0" * 64)
        assert ran.code == 2
        assert f'Error: --head: Invalid value: "{"0" * 64}"; no record has this hash' in ran.errors

    def test_reads_standard_input(self, audit: Run, tmp_path: Path) -> None:
        (tmp_path / "-.head").write_text("of no file")
        stdin = b"".join(line + b"\n" for line in chain_lines(RECORDS))
        assert audit("verify", "-", stdin=stdin).output.startswith("intact: 4 records in 1 chain\n")

    def test_of_an_empty_file_exits_2(self, audit: Run, tmp_path: Path) -> None:
        (tmp_path / "audit.jsonl").touch()
        ran = audit("verify")
        assert (ran.code, ran.output) == (2, "0 records in 0 chains\n")
        assert ran.errors.startswith(
            "Error: audit.jsonl: Required value: holds no records, so nothing can be verified; "
        )

    def test_of_a_cut_off_beginning_exits_2_unless_partial(
        self, audit: Run, tmp_path: Path, lines: list[bytes]
    ) -> None:
        write_lines(tmp_path / "audit.jsonl", lines[1:])
        ran = audit("verify")
        assert ran.code == 2
        assert "cut out: 1 record before this one; give all files, or --partial" in ran.errors
        assert audit("verify", "--partial").code == 0

    def test_of_a_cut_off_end_exits_2_by_the_head_file(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"%020d %b" % (4, digest(lines[3]).encode())])
        assert audit("verify", "audit.jsonl", "audit.jsonl.head").output.count("note") == 0
        write_lines(tmp_path / "audit.jsonl", lines[:3])
        for files in ([], ["audit.jsonl"], ["audit.jsonl", "audit.jsonl.head"]):
            ran = audit("verify", *files)
            assert ran.code == 2
            assert ran.errors.startswith("Error: audit.jsonl.head: Invalid value: ")

    @pytest.mark.usefixtures("lines")
    @pytest.mark.parametrize(
        "files",
        [
            [],
            ["audit.jsonl.1"],
            ["audit.jsonl.1", "audit.jsonl.head"],
            ["audit.jsonl", "audit.jsonl.1"],
            ["copy.jsonl", "audit.jsonl.head"],
        ],
    )
    def test_of_a_deleted_file_exits_2_by_the_head_file(
        self, audit: Run, tmp_path: Path, lines: list[bytes], files: list[str]
    ) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"%020d %b" % (4, digest(lines[3]).encode())])
        for name in ("audit.jsonl.1", "copy.jsonl"):
            write_lines(tmp_path / name, lines[:2])
        (tmp_path / "audit.jsonl").unlink()
        ran = audit("verify", *files)
        assert ran.code == 2
        assert ran.errors.startswith(
            "Error: audit.jsonl: Required value: is gone or empty, but audit.jsonl.head counts 4 records, the last "
        )

    def test_of_a_broken_head_file_says_what_to_do(self, audit: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"x"])
        ran = audit("verify")
        assert ran.code == 2
        assert "audit.jsonl.head" in ran.errors
        assert "delete it to verify without it" in ran.errors

    @pytest.mark.usefixtures("lines")
    def test_alone_reads_head_files(self, audit: Run, tmp_path: Path) -> None:
        write_lines(tmp_path / "audit.jsonl.head", [b"x"])
        assert (audit("verify").code, audit("list").code) == (2, 0)

    def test_of_a_head_file_alone_asks_for_the_records(self, audit: Run) -> None:
        assert "holds no records; name the audit file as well" in audit("verify", "audit.jsonl.head").errors


def test_a_time_that_is_none_exits_2_and_names_the_option(audit: Run) -> None:
    ran = audit("list", "--context", "c", "--since", "yesterday")
    assert ran.code == 2
    assert ran.errors.startswith('Error: --since: Invalid value: "yesterday"; must be a time such as ')


class TestExport:
    def test_prints_the_records_of_all_files_in_the_order_of_time(
        self, audit: Run, tmp_path: Path, lines: list[bytes]
    ) -> None:
        others = chain_lines([make_record(number, replica="webhook-1") for number in (4, 5)])
        write_lines(tmp_path / "other.jsonl", others)
        write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        write_lines(tmp_path / "audit.jsonl", lines[2:])

        ran = audit("export", "other.jsonl", "audit.jsonl", "audit.jsonl.1", "-o", "all.jsonl")

        assert (ran.code, ran.output, ran.errors) == (0, "", "")
        assert (tmp_path / "all.jsonl").read_bytes().splitlines() == [*lines, *others]
        assert audit("verify", "all.jsonl").output.startswith("intact: 6 records in 2 chains\n")
        assert audit("export", "all.jsonl").output.encode() == (tmp_path / "all.jsonl").read_bytes()

    def test_names_and_leaves_out_what_is_no_record(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        (tmp_path / "audit.jsonl").write_bytes(b"\n".join(lines)[:-100])

        ran = audit("export", "audit.jsonl")

        assert ran.output.encode().splitlines() == lines[:3]
        assert ran.errors.startswith("warning: audit.jsonl:4: not an audit record, left out: ")

    @pytest.mark.usefixtures("lines")
    def test_leaves_nothing_on_a_full_disk(self, audit: Run, tmp_path: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            ran = audit("export", "audit.jsonl", "-o", "out.jsonl")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert (ran.code, [each.name for each in tmp_path.iterdir()]) == (2, ["audit.jsonl"])
        assert ran.errors.startswith("Error: --output: Invalid value")

    def test_reads_nothing_for_an_output_that_cannot_be_written(self, audit: Run, tmp_path: Path) -> None:
        ran = audit("export", "none.jsonl", "-o", tmp_path)

        assert ran.code == 2
        assert "--output" in ran.errors
        assert "Is a directory" in ran.errors


@pytest.mark.slow
def test_work_grows_as_the_number_of_records_does(audit: Run, tmp_path: Path) -> None:
    def read(count: int) -> None:
        assert len(audit("list").output.splitlines()) == count + 1
        assert audit("summary").output.startswith(f"{count} records\n")
        assert audit("verify").output.startswith(f"intact: {count} records in 1 chain\n")

    def calls(count: int) -> int:
        write_lines(tmp_path / "audit.jsonl", chain_lines(make_record(number) for number in range(count)))
        return calls_of(lambda: read(count))

    calls(2)  # imports the commands
    assert calls(4000) < 2.2 * calls(2000)


def test_an_answer_that_was_not_given_is_listed_shown_and_counted(audit: Run, tmp_path: Path) -> None:
    shadow = ShadowEntry(
        "Patched", (RuleEntry("SchedulerName", ("schedulerName volcano",)),), PATCH[2:], ("a warning",)
    )
    record = make_record(
        outcome="Bypassed", rules=(), patch=(), warnings=(), placement=None, error="shadow mode", shadow=shadow,
        before={"/spec/schedulerName": "default-scheduler"},
    )  # fmt: skip
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"".join(line + b"\n" for line in chain_lines([record])))

    assert "shadow mode, would be Patched" in audit("list", log).output
    shown = audit("show", record.decision, log).output
    for text in (
        "this would be the answer",
        "schedulerName volcano",
        "- default-scheduler",
        "+ volcano",
        "! a warning",
    ):
        assert text in shown
    assert "IN SHADOW MODE, WOULD BE" in audit("summary", log).output
    assert orjson.loads(audit("summary", "-o", "json", log).output)["shadowed"] == {"Patched": 1}


def test_a_summary_of_records_without_rules_has_no_table_of_them(audit: Run, tmp_path: Path) -> None:
    record = make_record(outcome="Bypassed", rules=(), patch=(), error="no workload type", placement=None)
    write_lines(tmp_path / "audit.jsonl", chain_lines([record]))

    assert "RULE" not in audit("summary").output
