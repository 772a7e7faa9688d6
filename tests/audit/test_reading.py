import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.programs.audit_records import chain_lines, encode, make_record, write_lines
from webhook.audit.reading import Entry, InvalidLine, is_audit_log, read, rotated_files
from webhook.audit.record import BEGINNING, FIRST
from webhook.audit.selection import parse_moment
from webhook.audit.sources import Download, Sources
from webhook.documents.field import InvalidInput


def decisions(*names: str) -> tuple[list[str], list[str]]:
    """Return the decisions in these files in reading order, and the places of invalid lines."""
    broken: list[InvalidLine] = []
    with Sources.of_files(names) as sources:
        return [entry.record.decision for entry in sources.entries(broken.append)], [line.place for line in broken]


@pytest.mark.parametrize(
    ("lines", "is_log"),
    [
        pytest.param([], True, id="empty"),
        pytest.param(["record"], True, id="a record"),
        pytest.param(["text", "record", "text"], True, id="a record among other lines"),
        pytest.param(["record", "text"], True, id="a record first"),
        pytest.param(["text", "text", "record"], True, id="a record last"),
        pytest.param(["text"], False, id="other lines"),
        pytest.param(["torn"], True, id="the beginning of a record"),
        pytest.param(["torn", "text"], False, id="a part of a record in a line of its own"),
    ],
)
def test_a_file_with_a_record_at_its_beginning_or_end_is_an_audit_log(
    tmp_path: Path, lines: list[str], is_log: bool
) -> None:
    (line,) = chain_lines([make_record(1)])
    content = {"record": line + b"\n", "text": b'{"kind":"Event"}\n', "torn": line[:40]}
    data = b"".join(content[each] for each in lines)
    path = tmp_path / "audit.jsonl"
    path.write_bytes(data)
    assert is_audit_log(path) == is_log


class TestReading:
    def test_files_of_several_replicas_are_read_in_the_order_of_time(self, tmp_path: Path) -> None:
        even = write_lines(tmp_path / "even", chain_lines(make_record(number) for number in (2, 4, 8)))
        odd = write_lines(tmp_path / "odd", chain_lines(make_record(number) for number in (1, 3, 5)))
        assert decisions(str(even), str(odd)) == (["d0001", "d0002", "d0003", "d0004", "d0005", "d0008"], [])

    def test_times_of_another_zone_are_in_the_order_of_time(self, tmp_path: Path) -> None:
        eastern = [make_record(number, time=f"2026-05-01T10:00:0{number}+02:00") for number in (1, 3)]
        western = [make_record(number, time=f"2026-05-01T03:00:0{number}.5-05:00") for number in (1, 2)]
        paths = [
            str(write_lines(tmp_path / name, chain_lines(each))) for name, each in (("e", eastern), ("w", western))
        ]
        utc = str(write_lines(tmp_path / "utc", chain_lines([make_record(2), make_record(4)])))
        assert decisions(utc, *paths) == (["d0001", "d0001", "d0002", "d0002", "d0003", "d0004"], [])

    def test_rotated_files_may_be_given_newest_first(self, tmp_path: Path) -> None:
        lines = chain_lines(make_record(number) for number in range(4))
        newest = write_lines(tmp_path / "audit.jsonl", lines[2:])
        oldest = write_lines(tmp_path / "audit.jsonl.1", lines[:2])
        assert decisions(str(newest), str(oldest)) == (["d0000", "d0001", "d0002", "d0003"], [])

    def test_a_file_given_twice_is_read_once(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a", chain_lines([make_record(1)]))
        assert decisions(str(path), str(path)) == (["d0001"], [])

    def test_invalid_lines_are_omitted_and_reported_by_file_and_line(self, tmp_path: Path) -> None:
        first, second = chain_lines([make_record(1), make_record(2)])
        path = write_lines(tmp_path / "a", [first, b"{", b"", second, second[:50]])
        assert decisions(str(path)) == (["d0001", "d0002"], [f"{path}:2", f"{path}:5"])

    def test_all_unreadable_files_are_reported(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(InvalidInput) as raised:
            Sources.of_files([str(tmp_path / "absent"), str(tmp_path / "folder")])
        assert [(error.path, error.value) for error in raised.value.errors] == [
            (str(tmp_path / "absent"), "No such file or directory"),
            (str(tmp_path / "folder"), "Is a directory"),
        ]

    def test_lines_are_read_as_they_are_asked_for(self) -> None:
        (line,) = chain_lines([make_record(1)])
        entries = read("endless", itertools.repeat(line + b"\n"))
        assert [entry.place for entry in itertools.islice(entries, 3)] == ["endless:1", "endless:2", "endless:3"]

    def test_line_cut_off_by_the_end_of_the_file_is_distinguished(self) -> None:
        broken = [line for line in read("a", [b"{\n", b"{"]) if isinstance(line, InvalidLine)]
        assert [line.cut_off for line in broken] == [False, True]

    def test_a_record_keeps_the_line_it_was_read_from(self) -> None:
        (line,) = chain_lines([make_record(1)])
        (entry,) = read("a", [line + b"\n"])
        assert isinstance(entry, Entry)
        assert entry.line == line


NOW = datetime(2026, 5, 2, 12, tzinfo=UTC)


class TestMoment:
    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-05-01T08:00:00Z", datetime(2026, 5, 1, 8, tzinfo=UTC)),
            ("2026-05-01T10:00:00+02:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
            ("2026-05-01T08:00:00.25", datetime(2026, 5, 1, 8, microsecond=250000, tzinfo=UTC)),
            ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
            ("30s", NOW - timedelta(seconds=30)),
            ("45m", NOW - timedelta(minutes=45)),
            ("12h", NOW - timedelta(hours=12)),
            ("1d12h", NOW - timedelta(hours=36)),
            ("0s", NOW),
        ],
    )
    def test_is_a_time_or_how_long_ago(self, text: str, moment: datetime) -> None:
        assert parse_moment(text, NOW, "--since") == moment

    @pytest.mark.parametrize("text", ["", "yesterday", "1h30", "-1h", "1.5h", "h", "99999999999d", "2026-13-01"])
    def test_is_refused_where_it_is_neither(self, text: str) -> None:
        with pytest.raises(InvalidInput) as raised:
            parse_moment(text, NOW, "--since")
        (error,) = raised.value.errors
        assert (error.path, error.value) == ("--since", text)
        assert "or how long ago, such as 45m" in error.detail


def test_a_line_of_a_log_is_read_in_pieces_and_the_records_behind_it_are_found(tmp_path: Path) -> None:
    record = encode(make_record(), 1, FIRST)
    path = tmp_path / "log"
    path.write_bytes(BEGINNING + b"x" * 1_000_000 + b"\n" + record + b"\n" + b"y" * 1_000_000)

    with Sources.of_replicas([Download("webhook-a", path)]) as logs:
        cut: list[InvalidLine] = []
        (entry,) = logs.entries(cut.append)

    assert (entry.line, entry.place) == (record, "webhook-a:2")
    (line,) = cut
    assert len(line.line) < 200_000


def test_rotated_files_are_the_oldest_first_and_the_file_itself_last(tmp_path: Path) -> None:
    path = tmp_path / "a[1].jsonl"
    for suffix in ("", ".1", ".2", ".10", ".x", ".x.4", ".pods"):
        Path(f"{path}{suffix}").touch()
    Path(f"{path}.3").mkdir()
    found = [name.removeprefix(str(path)) for name in rotated_files(path)]

    assert found == [".10", ".2", ".1", ""]
    path.unlink()
    assert [name.removeprefix(str(path)) for name in rotated_files(path)] == [".10", ".2", ".1"]
