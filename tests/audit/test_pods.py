"""`FILE.pods`: each pod once, bounded, verified with the records that name it."""

import os
from pathlib import Path

import orjson
import pytest

from tests.support.objects.clusters import review
from tests.support.programs.command import run_here
from tests.support.programs.recorded_admissions import write_recorded
from webhook.audit import pods
from webhook.audit.file import write_whole
from webhook.audit.pods import LARGEST_POD_BYTES, PodFile, PodIndex, compare_pods, pods_paths
from webhook.documents.field import InvalidInput, invalid

POD = b'{"pod":{}}'


def contents(path: Path) -> list[str]:
    return [orjson.loads(line)["pod"] for line in path.read_bytes().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_a_pod_is_written_once_also_by_the_next_process(log: Path) -> None:
    old, path = pods_paths(log)
    digests: set[str] = set()
    for _ in range(2):
        file = PodFile(log)
        digests = {file.put(content) for content in (POD, b"[1]", POD)}
        file.close()

    assert set(contents(path)) == digests
    assert len(contents(path)) == 2
    assert not old.exists()


def test_the_content_is_found_by_its_digest(log: Path) -> None:
    file = PodFile(log)
    digest = file.put(POD)
    index = PodIndex()
    with pods_paths(log)[1].open("rb") as opened:
        index.add("pods", opened)

        assert (index.content(digest), index.content("00"), index.content("x")) == (POD, None, None)
        assert (digest in index, "00" in index, index.faults) == (True, False, [])


def test_a_full_file_is_kept_once_more_and_pods_are_written_again(log: Path) -> None:
    old, path = pods_paths(log)
    file = PodFile(log, max_bytes=250)
    first = file.put(b"[1]")
    before = file.era
    rest = [file.put(b"[%d]" % number) for number in range(2, 6)]

    assert file.era > before
    assert path.stat().st_size <= 250
    assert first not in contents(path)
    assert file.put(b"[1]") == first
    assert {*contents(old), *contents(path)} >= {first, rest[-1]}


def test_a_full_file_that_was_deleted_is_made_again(log: Path) -> None:
    failures: list[OSError] = []
    file = PodFile(log, max_bytes=250, on_failure=failures.append)
    file.put(b"[1]")
    pods_paths(log)[1].unlink()
    digests = [file.put(b"[%d]" % number) for number in range(2, 6)]

    assert failures == []
    assert digests[-1] in contents(pods_paths(log)[1])


def test_a_pod_that_is_too_large_is_not_kept(log: Path) -> None:
    assert PodFile(log).put(b"x" * (LARGEST_POD_BYTES + 1)) == ""
    assert contents(pods_paths(log)[1]) == []


def test_the_largest_pod_is_found_by_its_digest(log: Path) -> None:
    content = b'"%b"' % (b"x" * (LARGEST_POD_BYTES - 2))
    digest = PodFile(log).put(content)
    index = PodIndex()
    with pods_paths(log)[1].open("rb") as opened:
        index.add("pods", opened)

        assert (index.content(digest), index.faults) == (content, [])


def test_a_line_longer_than_any_pod_is_read_in_pieces(log: Path) -> None:
    path, index = pods_paths(log)[1], PodIndex()
    path.write_bytes(b"x" * (3 * LARGEST_POD_BYTES))
    with path.open("rb") as opened:
        index.add("pods", opened)

    assert [each.path for each in index.faults] == ["pods:1", "pods:2", "pods:3"]


def test_a_failure_is_reported_once_and_leaves_whole_lines(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[OSError] = []
    file = PodFile(log, on_failure=failures.append)
    file.put(POD)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert [file.put(b"[1]"), file.put(b"[2]")] == ["", ""]
    again = file.put(b"[1]")

    assert [each.errno for each in failures] == [28]
    assert contents(pods_paths(log)[1])[-1] == again


def test_each_outage_is_reported_once_and_a_pod_that_was_not_written_is_tried_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[OSError] = []
    file, write = PodFile(log, on_failure=failures.append), write_whole
    known = file.put(POD)

    def full(descriptor: int, data: bytes) -> None:
        write(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    for outage in (1, 2):
        monkeypatch.setattr(pods, "write_whole", full)
        assert [file.put(content) for content in (b"[%d]" % outage, POD, b"[3]")] == ["", known, ""]
        assert len(failures) == outage
        monkeypatch.setattr(pods, "write_whole", write)
        assert file.put(b"[%d]" % outage)
    file.close()
    assert contents(pods_paths(log)[1]) == [known, *(PodFile(log).put(b"[%d]" % outage) for outage in (1, 2))]


def test_a_line_that_a_crash_cut_off_is_ended(log: Path) -> None:
    path = pods_paths(log)[1]
    PodFile(log).put(POD)
    path.write_bytes(path.read_bytes() + b'{"pod":"12')
    digest = PodFile(log).put(b"[1]")
    index = PodIndex()
    with path.open("rb") as opened:
        index.add("pods", opened)

        assert index.content(digest) == b"[1]"
        (fault,) = index.faults
        assert (fault.path, fault.detail.partition(":")[0]) == ("pods:2", "torn")


@pytest.mark.parametrize(
    ("position", "problem"),
    [(0, "torn"), (2, "torn"), (20, "altered"), (80, "torn"), (90, "altered"), (-2, "torn")],
)
def test_a_line_altered_in_any_part_is_reported_and_its_pod_not_found(log: Path, position: int, problem: str) -> None:
    path, index = pods_paths(log)[1], PodIndex()
    digests = [PodFile(log).put(content) for content in (b'{"pod":{"a":"bcd"}}', POD)]
    first, second = map(bytearray, path.read_bytes().splitlines(keepends=True))
    first[position] ^= 1
    path.write_bytes(first + second)
    with path.open("rb") as opened:
        index.add("pods", opened)

        assert [(each.path, each.detail.partition(":")[0]) for each in index.faults] == [("pods:1", problem)]
        assert [index.content(each) for each in digests] == [None, POD]


@pytest.mark.parametrize(("written_bytes", "torn_lines"), [(0, []), (20, ["pods:1"])])
def test_after_a_line_that_could_not_be_taken_back_the_next_one_begins_anew(
    log: Path, monkeypatch: pytest.MonkeyPatch, written_bytes: int, torn_lines: list[str]
) -> None:
    path, write, index = pods_paths(log)[1], os.write, PodIndex()
    sizes = iter([written_bytes] if written_bytes else [])
    file = PodFile(log)

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    def write_a_part(descriptor: int, data: bytes) -> int:
        return next((write(descriptor, data[:size]) for size in sizes), None) or fail()

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_a_part)
        full.setattr(os, "ftruncate", fail)
        assert file.put(b"[1]") == ""
    digests = [file.put(b"[%d]" % number) for number in (2, 3)]

    _, *lines = path.read_bytes().splitlines()
    assert [orjson.loads(line)["pod"] for line in lines] == digests
    with path.open("rb") as opened:
        index.add("pods", opened)

        assert [each.path for each in index.faults] == torn_lines


@pytest.mark.parametrize("content", [b"hello\n", b'{"time":"2026"}\n'])
def test_another_file_is_not_written(log: Path, content: bytes) -> None:
    pods_paths(log)[1].write_bytes(content)

    with pytest.raises(InvalidInput, match="holds something else than pods"):
        PodFile(log)


class TestVerify:
    @pytest.fixture
    def pods(self, log: Path) -> Path:
        write_recorded(log, (review(number, shape=number % 3) for number in range(6)))
        return pods_paths(log)[1]

    def test_pods_as_they_were_written_are_intact(self, log: Path, pods: Path) -> None:
        done = run_here("audit", "verify", log, log.with_name("audit.jsonl.head"), pods)

        assert (done.code, done.errors) == (0, "")
        assert "note" not in done.output

    def test_an_altered_pod_is_a_fault(self, log: Path, pods: Path) -> None:
        pods.write_bytes(pods.read_bytes().replace(b"team-a", b"team-b", 1))
        done = run_here("audit", "verify", log)

        assert done.code == 2
        assert "audit.jsonl.pods:1: Invalid value" in done.errors
        assert "altered: its content is not that of its digest" in done.errors

    def test_a_pod_that_was_cut_out_is_a_fault(self, log: Path, pods: Path) -> None:
        pods.write_bytes(b"".join(pods.read_bytes().splitlines(keepends=True)[1:]))
        done = run_here("audit", "verify", log)

        assert done.code == 2
        assert (
            "audit.jsonl:1: pod: Required value: cut out: 1 pod that a record names is not in FILE.pods" in done.errors
        )

    def test_pods_that_newer_ones_replaced_are_a_note(self, log: Path, pods: Path) -> None:
        pods.rename(pods_paths(log)[0])
        lines = pods_paths(log)[0].read_bytes().splitlines(keepends=True)
        pods_paths(log)[0].write_bytes(lines[0])
        done = run_here("audit", "verify", log)

        assert (done.code, done.errors) == (0, "")
        assert (
            "note: 2 pods that records name are gone: FILE.pods was full, and newer ones replaced them" in done.output
        )

    def test_records_without_their_pods_are_a_note(self, log: Path, pods: Path) -> None:
        pods.unlink()

        assert (
            "note: 3 pods that records name are not verified: there is no FILE.pods"
            in run_here("audit", "verify", log).output
        )


@pytest.mark.parametrize("is_altered", [False, True])
@pytest.mark.parametrize("has_old", [False, True])
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_missing_pods_are_a_fault_unless_newer_ones_replaced_them(
    missing: int, *, has_old: bool, is_altered: bool
) -> None:
    """A line that is altered is a fault in each case."""
    index = PodIndex()
    index.has_old = has_old
    altered = [invalid("FILE.pods:1", "x", "altered")] if is_altered else []
    index.faults = [*altered]
    places = {f"digest-{number}": f"audit.jsonl:{number}" for number in range(missing)}

    notes, faults = compare_pods(places, index)

    assert len(notes) == (missing > 0 and has_old)
    assert faults[: len(altered)] == altered
    assert len(faults) - len(altered) == (missing > 0 and not has_old)
    assert compare_pods(places, None)[1] == []
