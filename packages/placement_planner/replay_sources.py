"""The sources of `replay`: audit files with their pods, audit logs of API servers, and cluster files."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from io import SEEK_END
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import orjson

from placement_planner.log_lines import API_GROUP, OnInvalid, is_event
from placement_planner.replay.admission import Admission
from placement_planner.replay.audit_logs import admissions_of_events, admissions_of_records
from placement_planner.replay.cluster_objects import admissions_of_objects
from webhook.audit.head import SUFFIX as HEAD_SUFFIX
from webhook.audit.pods import SUFFIXES as POD_SUFFIXES
from webhook.audit.pods import PodIndex, pods_beside
from webhook.audit.record import BEGINNING
from webhook.cli.inputs.files import STANDARD_INPUT, place_of, unreadable
from webhook.documents.documents import Document, parse, parse_list
from webhook.documents.field import InvalidInput, invalid
from webhook.documents.json_text import NotAListError
from webhook.kube.workloads.workload_kinds import Kinds

_START_BYTES = 64 * 1024
_LARGE_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b"
_FLAG = "SOURCE"

_Form = Literal["records", "events", "objects"]


class _File(NamedTuple):
    """A file. `head` is its beginning, which was already read to detect the format."""

    name: str
    stream: BinaryIO
    form: _Form
    head: bytes = b""


class ReplaySources:
    """Sources that are open for reading until the stack of the caller is closed.

    `left_out` counts, by reason, the inputs that are not creations of pods. `pods` are the recorded pods of all audit
    files. `on_invalid` gets the error of a line that cannot be read.
    """

    def __init__(self, names: Sequence[str], on_invalid: OnInvalid, stack: ExitStack, flag: str = "SOURCE") -> None:
        """Open the files that the user gave as `flag`; `-` is standard input.

        Head files are skipped. For `FILE.pods`, the records in FILE are read.

        Raises:
            InvalidInput: a file cannot be read, or is not a source.
        """
        self.left_out: Counter[str] = Counter()
        self.pods = PodIndex()
        self._on_invalid = on_invalid
        self._files: list[_File] = []
        self._indexed: set[Path] = set()
        self._stack = stack
        for name in dict.fromkeys(names):
            try:
                self._add(name)
            except OSError as error:
                raise unreadable(flag, name, error) from error
        if self.pods.faults:
            raise InvalidInput(self.pods.faults)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def has_records(self) -> bool:
        """Return whether one of the sources is an audit file."""
        return any(each.form == "records" for each in self._files)

    def _add(self, name: str) -> None:
        if name.endswith(HEAD_SUFFIX):
            return
        if name.endswith(POD_SUFFIXES):
            self._add_pods(Path(name))
            return
        stream = sys.stdin.buffer if name == STANDARD_INPUT else self._opened(Path(name))
        head = b""
        if name != STANDARD_INPUT and Path(name).is_file():
            form = _form_of(name, stream.read(_START_BYTES))
            stream.seek(0)
        else:
            head = _first_lines(stream)
            form = _form_of(name, head)
        self._files.append(_File(place_of(name), stream, form, head))
        if form == "records" and name != STANDARD_INPUT:
            for path in pods_beside(Path(name)):
                self._add_pods(path)

    def _add_pods(self, path: Path) -> None:
        if path.exists() and path.absolute() not in self._indexed:
            self._indexed.add(path.absolute())
            self.pods.add(str(path), self._opened(path))

    def _opened(self, path: Path) -> BinaryIO:
        return self._stack.enter_context(path.open("rb"))

    def admissions(self, kinds: Kinds) -> Iterator[Admission]:
        """Yield the admissions of all sources, one source after the other. `kinds` are the kinds that create pods.

        Raises:
            InvalidInput: an object of a cluster file cannot be read, or a file has no object that is or creates a pod.
        """
        for file in self._files:
            if file.form == "objects":
                yield from admissions_of_objects(_documents(file, kinds), kinds, self.left_out)
            elif file.form == "events":
                yield from admissions_of_events(_lines(file), self.left_out, self._on_invalid)
            else:
                yield from admissions_of_records(_lines(file), self.pods, self.left_out, self._on_invalid)


def _first_lines(stream: BinaryIO) -> bytes:
    """Return the beginning of a pipe, up to the first non-empty line. A pipe can only be read once."""
    head = stream.readline()
    while head.isspace() and (line := stream.readline()):
        head += line
    return head


def _form_of(name: str, start: bytes) -> _Form:
    """Return the format of a file from its beginning. The file must not be empty or compressed."""
    if start.startswith(_GZIP):
        detail = f"is compressed; pipe it: `zcat {name} | placement-webhook replay … -`"
        raise InvalidInput([invalid(_FLAG, name, detail)])
    first = start.lstrip().partition(b"\n")[0]
    if not first:
        raise InvalidInput([invalid(_FLAG, name, "is empty")])
    if first.startswith(BEGINNING):
        return "records"
    if first.startswith(b"{"):
        with suppress(orjson.JSONDecodeError):
            return "events" if is_event(orjson.loads(first)) else "objects"
        if f'"apiVersion":"{API_GROUP}'.encode() in first:
            return "events"
    return "objects"


def _lines(file: _File) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(chain(file.head.splitlines(keepends=True), file.stream), start=1):
        if not line.isspace():
            yield f"{file.name}:{number}", line


def _documents(file: _File, kinds: Kinds) -> Sequence[Document]:
    """Return the objects of a cluster file, of which at least one must be a pod or create pods."""
    found = _parsed(file)
    names = {"Pod", *(kind for _, kind in kinds)}
    if not any(str(each.content.get("kind")) in names for each in found):
        detail = (
            "holds no audit record, no event of an API server's audit log, and no object that is or makes a pod; give "
            "the FILE of `serve --audit`, such a log, or what `kubectl get pods,namespaces -A -o json` prints"
        )
        raise InvalidInput([invalid(_FLAG, file.name, detail)])
    return found


def _parsed(file: _File) -> Sequence[Document]:
    if not file.head:
        with suppress(NotAListError):
            if file.stream.seek(0, SEEK_END) > _LARGE_BYTES:
                return list(parse_list(file.stream, file.name))
        file.stream.seek(0)
    return parse(file.head + file.stream.read(), file.name)
