"""Read audit files line by line and select records from them."""

import fnmatch
import heapq
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Self

from webhook.audit.lines import is_audit_log
from webhook.audit.record import AuditRecord, moment, parse_line
from webhook.kube.field import FieldError, InvalidInput, invalid

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, with its line and the line's place (`audit.jsonl:17`)."""

    place: str
    line: bytes
    record: AuditRecord


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line that is not a record, and why. `cut_off`: the file ends within the line."""

    place: str
    line: bytes
    problem: str
    cut_off: bool


class Sources:
    """Audit files open for reading; a context manager that closes them."""

    def __init__(self, names: Sequence[str]) -> None:
        """Open each file; `-` is standard input.

        Raises:
            InvalidInput: files cannot be read or are no audit logs; lists all of them.
        """
        self._stack = ExitStack()
        self._streams: list[tuple[str, BinaryIO]] = []
        errors: list[FieldError] = []
        for name in dict.fromkeys(names):
            if name == STANDARD_INPUT:
                self._streams.append(("<stdin>", sys.stdin.buffer))
                continue
            try:
                stream = Path(name).open("rb")  # noqa: SIM115 - the stack closes it
                self._streams.append((name, self._stack.enter_context(stream)))
                if Path(name).is_file() and not is_audit_log(Path(name)):
                    errors.append(_no_audit_log(name))
            except OSError as error:
                problem = error.strerror or type(error).__name__
                errors.append(invalid(name, problem, "give an audit file that can be read, or - for standard input"))
        if errors:
            self._stack.close()
            raise InvalidInput(errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lines(self) -> Iterator[tuple[str, Iterator[Entry | InvalidLine]]]:
        """Yield the name of each file with its lines. Can be read once."""
        for name, stream in self._streams:
            yield name, read(name, stream)

    def entries(self, on_invalid: Callable[[InvalidLine], None]) -> Iterator[Entry]:
        """Return the records of all files in the order of their time; lines that are not records go to `on_invalid`.

        Rotated files may be given in any order, together with the files of other replicas: each file is in order.
        """
        ordered = [_entries(name, lines, on_invalid) for name, lines in self.lines()]
        return heapq.merge(*ordered, key=lambda entry: moment(entry.record.time))


def _no_audit_log(name: str) -> FieldError:
    with Path(name).open("rb") as file:
        start = file.read(60)
    if start.startswith(b"\x1f\x8b"):
        detail = "is compressed; pipe it: `zcat FILE | placement-webhook audit list -`"
        return FieldError(name, "Unsupported value", "gzip", detail)
    text = start.split(b"\n", 1)[0].decode("utf-8", "replace")
    return invalid(name, text, "holds no audit record; give the file of `serve --audit`")


def rotated_files(path: Path) -> list[str]:
    """Return `path` and its rotated files (`path.1`, …) that exist, the oldest first."""
    numbered = [
        (int(suffix), file) for file in path.parent.glob(f"{path.name}.*") if (suffix := file.suffix[1:]).isdecimal()
    ]
    files = [file for _, file in sorted(numbered, reverse=True)]
    return [str(file) for file in (*files, path) if file.is_file()]


def read(name: str, stream: Iterable[bytes]) -> Iterator[Entry | InvalidLine]:
    """Yield the lines of one file, without empty ones."""
    for number, text in enumerate(stream, start=1):
        line = text.removesuffix(b"\n")
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            yield Entry(place, line, parse_line(line))
        except ValueError as error:
            yield InvalidLine(place, line, str(error), cut_off=not text.endswith(b"\n"))


def _entries(
    name: str, lines: Iterable[Entry | InvalidLine], on_invalid: Callable[[InvalidLine], None]
) -> Iterator[Entry]:
    """Yield the records among the lines.

    Raises:
        InvalidInput: no line is a record.
    """
    has_record, wrong = False, None
    for line in lines:
        if isinstance(line, Entry):
            has_record = True
            yield line
        else:
            wrong = wrong or line
            on_invalid(line)
    if wrong and not has_record and not wrong.cut_off:
        raise InvalidInput([invalid(name, wrong.problem, "holds no audit record; give the output of `serve --audit`")])


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter on records. An empty field selects all."""

    namespaces: tuple[str, ...] = ()
    workload_types: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    pod: str = ""
    """`NAMESPACE/NAME` or `NAME`, with `*` and `?`."""
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, record: AuditRecord) -> bool:
        """Return whether the record is selected. `since` is inclusive, `until` is exclusive."""
        return (
            (not self.namespaces or record.namespace in self.namespaces)
            and (not self.workload_types or record.workload_type in self.workload_types)
            and (not self.outcomes or record.outcome in self.outcomes)
            and (not self.pod or _is_pod(record, self.pod))
            and (self.since is None or moment(record.time) >= self.since)
            and (self.until is None or moment(record.time) < self.until)
        )


# The suffix that the API server appends to a generateName.
# Source: k8s.io/apiserver/pkg/storage/names/generate.go, k8s.io/apimachinery/pkg/util/rand/rand.go
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")


def _is_pod(record: AuditRecord, wanted: str) -> bool:
    namespace, slash, name = wanted.rpartition("/")
    if slash and not fnmatch.fnmatchcase(record.namespace, namespace):
        return False
    if fnmatch.fnmatchcase(record.name, name):
        return True
    # At admission the name was not generated yet. A pod with a matching generated name may be the one.
    prefix = record.name
    return prefix.endswith("-") and name.startswith(prefix) and bool(_GENERATED.fullmatch(name[len(prefix) :]))


_DURATION = re.compile(r"(?=.)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_moment(text: str, now: datetime, place: str) -> datetime:
    """Return the time in `text`: RFC 3339 (UTC if it has no zone), or a duration before `now`, such as `1d12h`.

    Raises:
        InvalidInput: `text` is neither. `place` names the option in the message.
    """
    try:
        if duration := _DURATION.fullmatch(text):
            days, hours, minutes, seconds = (int(part or 0) for part in duration.groups())
            return now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        point = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        remedy = "must be a time such as 2026-05-01T08:00:00Z, or how long ago, such as 45m, 12h or 1d12h"
        raise InvalidInput([invalid(place, text, remedy)]) from error
    return point if point.tzinfo else point.replace(tzinfo=UTC)
