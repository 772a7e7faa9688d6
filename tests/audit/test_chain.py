from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.effort import examples
from tests.support.programs.audit_records import as_file, chain_lines, encode, make_record
from webhook.audit.chain import Verification, verify
from webhook.audit.head import ChainHead
from webhook.audit.lines import digest
from webhook.audit.reading import read
from webhook.audit.record import parse_line

TEN = chain_lines(make_record(number) for number in range(1, 11))

File = list[bytes]


NO_HEAD = "without a head, records cut off at the end cannot be detected: give one with --head"


def check(*files: File, heads: Sequence[str] = (), partial: bool = False) -> Verification:
    """Return the verification of files named a, b, c, …."""
    named = (as_file(name, lines) for name, lines in zip("abcdefghijkl", files, strict=False))
    return verify(named, heads, partial=partial)


def check_named(files: dict[str, File], kept: ChainHead | None = None) -> Verification:
    """Return the verification of files with these names; `kept` is the content of a head file."""
    kept_heads = {"audit.jsonl.head": kept} if kept else {}
    return verify((as_file(name, lines) for name, lines in files.items()), kept_heads=kept_heads)


def faults(verification: Verification) -> list[tuple[str, str]]:
    """Return the place and kind of each fault."""
    return [(fault.path, fault.detail.split(":")[0].split(",")[0]) for fault in verification.faults]


def altered(line: bytes) -> bytes:
    return line.replace(b"team-a", b"team-b")


class TestIntact:
    def test_chain(self) -> None:
        verification = check(TEN)
        assert (verification.records, verification.faults, verification.notes) == (10, [], [NO_HEAD])
        (chain,) = verification.chains
        assert chain.to_json() == {
            "replicas": ["webhook-0"],
            "files": ["a"],
            "records": 10,
            "complete": True,
            "first": "2026-05-01T08:00:01.000000Z",
            "last": "2026-05-01T08:00:10.000000Z",
            "head": digest(TEN[-1]),
        }

    def test_files_may_be_given_in_any_order(self) -> None:
        verification = check(TEN[7:], TEN[:3], TEN[3:7])
        assert (verification.faults, verification.notes) == ([], [NO_HEAD])
        (chain,) = verification.chains
        assert chain.files == ["b", "c", "a"]

    def test_files_of_several_replicas_may_be_given_at_once(self) -> None:
        other = chain_lines(make_record(number, replica="webhook-1") for number in range(5))
        verification = check(TEN[:5], other, TEN[5:])
        assert verification.faults == []
        assert [(chain.replicas, chain.records) for chain in verification.chains] == [
            (["webhook-0"], 10),
            (["webhook-1"], 5),
        ]

    def test_replicas_may_share_a_stream(self) -> None:
        other = chain_lines(make_record(number, replica="webhook-1") for number in range(10))
        mixed = [line for pair in zip(TEN, other, strict=True) for line in pair]
        verification = check(mixed)
        assert verification.faults == []
        assert [chain.records for chain in verification.chains] == [10, 10]

    def test_a_file_may_pass_from_one_replica_to_the_next(self) -> None:
        lines = chain_lines(make_record(number, replica=f"webhook-{number // 3}") for number in range(6))
        (chain,) = check(lines).chains
        assert chain.replicas == ["webhook-0", "webhook-1"]

    def test_the_oldest_records_may_be_rotated_away(self) -> None:
        verification = check_named({"audit.jsonl": TEN[7:], "audit.jsonl.2": TEN[4:6], "audit.jsonl.1": TEN[6:7]})
        assert verification.faults == []
        reported = "audit.jsonl.2:1: the chain continues here: 4 records before it, not in these files"
        assert verification.notes == [reported, NO_HEAD]
        assert verification.chains[0].to_json()["complete"] is False

    def test_a_process_without_its_old_file_starts_a_new_chain(self) -> None:
        verification = check(TEN[:4] + chain_lines([make_record(20), make_record(21)]))
        assert verification.faults == []
        assert verification.notes == [
            "a:5: a new chain starts here: the process did not find the old one",
            NO_HEAD,
        ]

    def test_records_that_went_to_standard_error_are_noted(self) -> None:
        later = chain_lines([make_record(20)], previous=digest(TEN[3]), first_sequence=7)
        reported = "2 records before it could not be written here; standard error may have them"
        assert check(TEN[:4] + later).notes == [f"a:5: {reported}", NO_HEAD]
        assert check(TEN[:4], later).notes == [f"b:1: {reported}", NO_HEAD]

    def test_the_oldest_records_may_be_absent_where_the_user_says_so(self) -> None:
        verification = check(TEN[4:], partial=True)
        assert verification.faults == []
        assert verification.notes[0] == "a:1: the chain continues here: 4 records before it, not in these files"


class TestBroken:
    @pytest.mark.parametrize("lines", [[], [b"", b"  "]], ids=["no line", "empty lines"])
    def test_files_without_records_cannot_be_verified(self, lines: File) -> None:
        (fault,) = check(lines, lines).faults
        assert fault.path == "a, b"
        assert fault.detail.startswith("holds no records, so nothing can be verified; ")

    @pytest.mark.parametrize(("count", "reported"), [(1, "1 record"), (3, "3 records")])
    def test_records_that_were_cut_off_at_the_beginning_are_counted(self, count: int, reported: str) -> None:
        (fault,) = check(TEN[count:]).faults
        assert fault.path == "a:1"
        assert fault.detail.startswith(f"cut out: {reported} before this one; ")

    def test_records_before_one_that_claims_to_be_the_first_are_not_counted(self) -> None:
        (fault,) = check(chain_lines([make_record()], previous=digest(TEN[0]))).faults
        assert fault.detail.startswith("cut out: records before this one; ")

    def test_a_rotated_file_with_older_ones_is_not_the_oldest(self) -> None:
        assert faults(check_named({"x.1": TEN[4:], "x.2": []})) == [("x.1:1", "cut out")]

    def test_the_current_file_is_not_the_oldest_where_there_are_rotated_ones(self) -> None:
        assert faults(check_named({"x": TEN[4:], "x.1": []})) == [("x:1", "cut out")]

    @pytest.mark.parametrize("line", [1, 5, 10])
    def test_altered_record_is_named_wherever_it_stands(self, line: int) -> None:
        assert faults(check([*TEN[: line - 1], altered(TEN[line - 1]), *TEN[line:]])) == [(f"a:{line}", "altered")]

    def test_altered_only_record_is_named(self) -> None:
        assert faults(check([altered(TEN[0])])) == [("a:1", "altered")]

    def test_altered_hash_is_reported(self) -> None:
        assert faults(check([*TEN[:9], TEN[9][:-3] + b'!"}'])) == [("a:10", "altered")]

    def test_record_without_a_hash_is_reported(self) -> None:
        (fault,) = check([*TEN[:9], TEN[9][:-75] + b"}"]).faults
        assert fault.detail.startswith("altered: it does not end in its hash; ")

    def test_altered_record_with_a_hash_to_fit_is_named(self) -> None:
        record = parse_line(altered(TEN[4]))
        forged = encode(record, record.sequence, record.previous)
        assert faults(check([*TEN[:4], forged, *TEN[5:]])) == [("a:5", "altered")]

    def test_records_cut_out_after_an_altered_one_are_reported(self) -> None:
        assert faults(check([*TEN[:4], altered(TEN[4]), *TEN[7:]])) == [("a:5", "altered"), ("a:6", "cut out")]

    def test_altered_record_is_named(self) -> None:
        assert faults(check([*TEN[:4], altered(TEN[4]), *TEN[5:]])) == [("a:5", "altered")]

    def test_altered_last_record_of_a_rotated_file_is_named(self) -> None:
        assert faults(check([*TEN[:4], altered(TEN[4])], TEN[5:])) == [("a:5", "altered")]

    def test_altered_first_record_of_a_later_file_is_no_gap(self) -> None:
        assert faults(check([altered(TEN[3]), *TEN[4:]])) == [("a:1", "altered")]

    def test_record_altered_beyond_reading_is_named(self) -> None:
        assert faults(check([*TEN[:4], b"{}", *TEN[5:]])) == [("a:5", "altered")]

    @pytest.mark.parametrize(("count", "reported"), [(1, "1 record between"), (3, "3 records between")])
    def test_records_that_were_cut_out_are_counted(self, count: int, reported: str) -> None:
        (fault,) = check(TEN[:4] + TEN[4 + count :]).faults
        assert fault.path == "a:5"
        assert fault.detail.startswith(f"cut out: {reported} a:4 and this one; ")

    def test_absent_file_between_others_is_found(self) -> None:
        (fault,) = check(TEN[7:], TEN[:3]).faults
        assert fault.path == "a:1"
        assert fault.detail.startswith("cut out: 4 records between b:3 and this one; ")

    def test_records_cut_out_behind_several_chains_follow_the_last_of_them(self) -> None:
        """The process began a new chain in the meantime."""
        later = chain_lines(make_record(number) for number in range(20, 30))
        verification = check(TEN, later[:4], later[6:])
        assert [fault.detail.partition(";")[0] for fault in verification.faults] == [
            "cut out: 2 records between b:4 and this one"
        ]

    def test_records_in_the_wrong_order_are_found_once(self) -> None:
        assert faults(check([*TEN[:4], TEN[5], TEN[4], *TEN[6:]])) == [("a:5", "out of order")]

    def test_wrong_order_at_the_beginning_is_found(self) -> None:
        assert faults(check([TEN[1], TEN[0], *TEN[2:]])) == [("a:1", "out of order")]

    def test_record_moved_to_the_beginning_of_another_file_is_found(self) -> None:
        assert faults(check([TEN[2], TEN[0]], [TEN[1]], TEN[3:])) == [("a:1", "out of order")]

    def test_records_in_the_middle_of_a_file_that_follow_another_file_are_out_of_order(self) -> None:
        other = chain_lines([make_record(20)])
        (fault,) = check(TEN[:5], other + TEN[5:]).faults
        assert (fault.path, fault.detail.partition(";")[0]) == ("b:2", "out of order: it follows a:5")

    def test_files_joined_in_the_wrong_order_are_found(self) -> None:
        assert faults(check(TEN[5:] + TEN[:5])) == [("a:1", "out of order")]

    def test_duplicate_record_is_found(self) -> None:
        assert faults(check([*TEN[:5], TEN[4], *TEN[5:]])) == [("a:6", "out of order")]
        assert faults(check([TEN[0], *TEN])) == [("a:2", "duplicate record; delete this line")]

    def test_copy_of_a_file_is_reported(self) -> None:
        (fault,) = check(TEN[:5], TEN[5:], TEN[5:]).faults
        assert (fault.path, fault.value) == ("c:1", "d0006")
        assert fault.detail == "follows a:5, as another file's first record does already; give each file once"

    def test_line_torn_by_a_crash_is_distinguished_from_an_altered_record(self) -> None:
        assert faults(check([*TEN[:4], TEN[9][:70], *TEN[4:]])) == [("a:5", "torn")]

    def test_line_torn_at_the_end_is_reported(self) -> None:
        stream = [line + b"\n" for line in TEN[:4]] + [TEN[4][:70]]
        verification = verify([("a", read("a", stream))])
        assert faults(verification) == [("a:5", "torn")]
        assert verification.records == 4

    def test_a_fault_is_not_followed_by_advice_about_heads(self) -> None:
        assert check([altered(TEN[0])]).notes == []

    def test_all_faults_are_reported(self) -> None:
        lines = [*TEN[:2], altered(TEN[2]), *TEN[3:5], *TEN[6:8], TEN[9], TEN[8]]
        assert faults(check(lines)) == [("a:3", "altered"), ("a:6", "cut out"), ("a:8", "out of order")]


class TestHeads:
    def test_noted_head_is_found_in_a_longer_chain(self) -> None:
        assert check(TEN, heads=[digest(TEN[9]), digest(TEN[4])]).faults == []

    def test_noted_head_reveals_records_cut_off_at_the_end(self) -> None:
        (fault,) = check(TEN[:8], heads=[digest(TEN[9])]).faults
        assert (fault.path, fault.value) == ("--head", digest(TEN[9]))
        assert "cut off or altered" in fault.detail

    def test_noted_head_reveals_an_altered_last_record(self) -> None:
        assert faults(check([*TEN[:9], altered(TEN[9])], heads=[digest(TEN[9])])) == [
            ("a:10", "altered"),
            ("--head", "no record has this hash"),
        ]

    def test_head_file_reveals_records_cut_off_at_the_end(self) -> None:
        kept = ChainHead(10, digest(TEN[9]))
        assert check_named({"audit.jsonl": TEN}, kept).notes == []
        (fault,) = check_named({"audit.jsonl": TEN[:8]}, kept).faults
        assert fault.path == "audit.jsonl.head"
        assert fault.detail.startswith("the last record written, number 10, is not there: ")

    def test_head_file_that_counts_records_on_standard_error_is_a_note(self) -> None:
        verification = check_named({"audit.jsonl": TEN}, ChainHead(10, digest(TEN[9]), missed=2))
        note = "audit.jsonl.head: 2 records after audit.jsonl:10 could not be written; standard error may have them"
        assert (verification.faults, verification.notes) == ([], [note])

    def test_head_file_reveals_an_emptied_file(self) -> None:
        (fault,) = check_named({"audit.jsonl": []}, ChainHead(10, digest(TEN[9]))).faults
        assert fault.path == "audit.jsonl"
        assert fault.detail.startswith("is gone or empty, but audit.jsonl.head counts 10 records, the last ")

    def test_head_file_reveals_an_emptied_file_beside_rotated_files(self) -> None:
        verification = check_named({"audit.jsonl.1": TEN[:5], "audit.jsonl": []}, ChainHead(10, digest(TEN[9])))
        assert faults(verification) == [("audit.jsonl", "is gone or empty")]

    def test_empty_file_after_a_rotation_is_no_fault(self) -> None:
        assert check_named({"audit.jsonl.1": TEN, "audit.jsonl": []}, ChainHead(10, digest(TEN[9]))).faults == []

    def test_the_head_file_may_lag_behind(self) -> None:
        assert check_named({"audit.jsonl": TEN}, ChainHead(9, digest(TEN[8]))).faults == []


@st.composite
def rotated(draw: st.DrawFn) -> list[File]:
    """Generate a chain over several files, possibly without its oldest records; each file has a line."""
    start = draw(st.integers(0, 5))
    cuts = draw(st.sets(st.integers(start + 1, len(TEN) - 1), max_size=4))
    borders = [start, *sorted(cuts), len(TEN)]
    return [TEN[begin:end] for begin, end in pairwise(borders)]


def inner_lines(files: list[File]) -> list[tuple[int, int]]:
    """Return file and line of each record with a predecessor and a successor."""
    return [(file, line) for file, lines in enumerate(files) for line in range(len(lines))][1:-1]


class TestAnySingle:
    """Any change to a record in the middle of a chain is found."""

    @settings(deadline=None)
    @given(st.data())
    def test_order_of_files_is_no_fault(self, data: st.DataObject) -> None:
        assert check(*data.draw(st.permutations(data.draw(rotated()))), partial=True).faults == []

    @settings(max_examples=examples(400), deadline=None)
    @given(st.data())
    def test_alteration_is_found(self, data: st.DataObject) -> None:
        files = data.draw(rotated())
        file, line = data.draw(st.sampled_from(inner_lines(files)))
        old = files[file][line]
        position = data.draw(st.integers(0, len(old) - 1))
        byte = data.draw(st.integers(0, 255).filter(lambda value: value != old[position]))
        files[file] = [
            *files[file][:line],
            old[:position] + bytes([byte]) + old[position + 1 :],
            *files[file][line + 1 :],
        ]
        assert check(*files, partial=True).faults

    @settings(deadline=None)
    @given(st.data())
    def test_removal_is_found(self, data: st.DataObject) -> None:
        files = data.draw(rotated())
        file, line = data.draw(st.sampled_from(inner_lines(files)))
        files[file] = files[file][:line] + files[file][line + 1 :]
        assert check(*files, partial=True).faults

    @settings(deadline=None)
    @given(st.data())
    def test_other_order_within_a_file_is_found(self, data: st.DataObject) -> None:
        files = data.draw(rotated())
        file = data.draw(st.sampled_from([number for number, lines in enumerate(files) if len(lines) > 1] or [0]))
        order = data.draw(st.permutations(files[file]))
        moved = order != files[file]
        files[file] = order
        assert bool(check(*files, partial=True).faults) == moved

    @settings(deadline=None)
    @given(st.data())
    def test_move_to_another_place_is_found(self, data: st.DataObject) -> None:
        files = data.draw(rotated())
        file, line = data.draw(st.sampled_from(inner_lines(files)))
        record = files[file][line]
        without = [*files]
        without[file] = files[file][:line] + files[file][line + 1 :]
        target = data.draw(st.integers(0, len(files) - 1))
        place = data.draw(st.integers(0, len(without[target])))
        without[target] = [*without[target][:place], record, *without[target][place:]]
        joined = [line for lines in without for line in lines]
        if joined != [line for lines in files for line in lines]:
            assert check(*without, partial=True).faults
