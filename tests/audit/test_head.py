"""The head file: the number and the hash of the newest record."""

import orjson
import pytest
from structlog.testing import capture_logs

from tests.audit.written_log import Log
from tests.support.programs.audit_records import make_record
from webhook.audit.head import ChainHead, head_path, read_head
from webhook.audit.lines import digest


class TestHead:
    def test_is_that_of_the_last_record(self, log: Log) -> None:
        with log.writer() as writer:
            for number in (1, 2):
                writer.write(make_record(number))
                kept = read_head(head_path(log.path))
                assert kept == ChainHead(number, writer.head) == ChainHead(number, digest(log.lines()[-1]))

    def test_that_is_deleted_comes_back_with_the_next_process(self, log: Log) -> None:
        log.write(1)
        head_path(log.path).unlink()
        log.write(2)
        assert read_head(head_path(log.path)) == ChainHead(2, digest(log.lines()[-1]))

    def test_that_lags_behind_after_a_crash_is_no_fault(self, log: Log) -> None:
        log.write(1)
        stale = head_path(log.path).read_bytes()
        log.write(2)
        head_path(log.path).write_bytes(stale)
        assert log.verify().faults == []
        log.write(3)
        assert (log.verify().faults, log.verify().records) == ([], 3)

    @pytest.mark.parametrize(("left", "reported"), [(2, "2 records between"), (0, "4 records before")])
    def test_keeps_a_cut_off_end_to_be_found_after_a_restart(self, log: Log, left: int, reported: str) -> None:
        log.write(1, 2, 3, 4)
        log.path.write_bytes(b"".join(line + b"\n" for line in log.lines()[:left]))
        with capture_logs() as logs:
            log.write(5)
        assert [(entry["event"], entry["last"], entry["last_written"]) for entry in logs] == [
            ("audit file lacks records that were written", left, 4)
        ]
        (fault,) = log.verify().faults
        assert fault.detail.startswith(f"cut out: {reported}")

    @pytest.mark.parametrize("missed", [0, 2])
    def test_of_another_record_with_the_number_of_the_last_is_followed(self, log: Log, missed: int) -> None:
        """The last record was altered, or put in the place of the one that was written."""
        log.write(1)
        written = ChainHead(1, "f" * 64)
        counted = f" {missed:020}" if missed else ""
        head_path(log.path).write_text(f"{written.sequence:020} {written.hash}{counted}\n")
        with capture_logs() as logs:
            log.write(2)
        assert [entry["event"] for entry in logs] == ["audit file lacks records that were written"]
        last = orjson.loads(log.lines()[-1])
        assert (last["previous"], last["sequence"]) == (written.hash, 2 + missed)

    @pytest.mark.parametrize("sequence", [1, 3])
    def test_an_altered_number_is_found_and_not_continued(self, log: Log, sequence: int) -> None:
        log.write(1, 2)
        head_path(log.path).write_text(f"{sequence:020} {digest(log.lines()[-1])}\n")
        (fault,) = log.verify().faults
        assert (fault.path, fault.value) == ("head", sequence)
        assert fault.detail.startswith(f"altered: the record of this hash ({log.path}:2) has the number 2; ")
        log.write(3)
        assert (orjson.loads(log.lines()[-1])["sequence"], log.verify().faults) == (3, [])

    def test_the_rest_of_a_longer_line_does_not_matter(self, log: Log) -> None:
        log.write(1)
        with head_path(log.path).open("ab") as file:
            file.write(b"%020d\n" % 3)
        assert read_head(head_path(log.path)) == ChainHead(1, digest(log.lines()[-1]))

    def test_that_is_empty_or_absent_is_none(self, log: Log) -> None:
        assert read_head(head_path(log.path)) is None
        head_path(log.path).touch()
        assert read_head(head_path(log.path)) is None
        log.write(1)
        assert read_head(head_path(log.path)) == ChainHead(1, digest(log.lines()[-1]))

    def test_invalid_head_is_overwritten(self, log: Log) -> None:
        log.write(1)
        head_path(log.path).write_bytes(b"x")
        log.write(2)
        with pytest.raises(ValueError, match="holds no sequence and hash"):
            read_head(log.path)
        assert (log.verify().faults, log.verify().records) == ([], 2)

    def test_failure_to_save_is_logged_once_and_loses_no_record(self, log: Log) -> None:
        head_path(log.path).mkdir()
        with capture_logs() as logs:
            log.write(1, 2)
        assert [entry["event"] for entry in logs] == ["audit head cannot be kept"]
        assert log.results == ["written", "written"]

    def test_repeated_failure_to_save_is_logged_again(self, log: Log) -> None:
        with log.writer() as writer, capture_logs() as logs:
            for number in range(2):
                head_path(log.path).mkdir()
                writer.write(make_record(number))
                head_path(log.path).rmdir()
                writer.write(make_record(number))
                head_path(log.path).unlink()
                # The file is closed when the log is created again.
                log.path.unlink()
        assert [entry["event"] for entry in logs] == ["audit head cannot be kept"] * 2
