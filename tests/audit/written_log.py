"""A log that a test writes and reads."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.programs.audit_records import make_record
from webhook.audit.chain import Verification, verify
from webhook.audit.head import head_path, read_head
from webhook.audit.reading import rotated_files
from webhook.audit.sources import Sources
from webhook.audit.writer import AuditWriter


class Log:
    """An audit file, with the callbacks and logs of its writer."""

    def __init__(self, path: Path, errors: IO[bytes]) -> None:
        self.path = path
        self.results: list[str] = []
        self.errors = errors

    def writer(self, **options: Any) -> AuditWriter:
        return AuditWriter(self.path, on_result=self.results.append, error_descriptor=self.errors.fileno(), **options)

    def printed(self) -> list[bytes]:
        """Return the records on standard error."""
        self.errors.seek(0)
        return self.errors.read().splitlines()

    def write(self, *numbers: int, **options: Any) -> None:
        """Simulate a process that writes these records and ends."""
        with self.writer(**options) as writer:
            for number in numbers:
                writer.write(make_record(number))

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines()

    def verify(self) -> Verification:
        head = read_head(head_path(self.path))
        with Sources.of_files(rotated_files(self.path)) as sources:
            return verify(sources.lines(), kept_heads={"head": head} if head else {})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tempfile.TemporaryFile() as errors:
        yield Log(tmp_path / "audit.jsonl", errors)
