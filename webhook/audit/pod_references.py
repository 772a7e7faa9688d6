"""Verify that the pods that records name are there, as they were written."""

from collections.abc import Iterable, Iterator

from webhook.audit.kept_heads import REMEDY
from webhook.audit.pods import PodIndex
from webhook.audit.reading import Entry, InvalidLine
from webhook.documents.field import FieldError, required

Lines = Iterable[Entry | InvalidLine]


class PodReferences:
    """The pods that records name, each with the place of the first record. Collected while the records are read."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def noted(self, files: Iterable[tuple[str, Lines]]) -> Iterator[tuple[str, Lines]]:
        """Yield the files, and collect what their records name."""
        return ((name, self._noted(lines)) for name, lines in files)

    def _noted(self, lines: Lines) -> Iterator[Entry | InvalidLine]:
        for line in lines:
            if isinstance(line, Entry) and line.record.pod:
                self._places.setdefault(line.record.pod, line.place)
            yield line

    def compare(self, pods: PodIndex | None) -> tuple[list[str], list[FieldError]]:
        """Return notes and faults; `pods` is None if there is no file of pods."""
        if pods is None:
            return ([f"{_pods(len(self._places))} not verified: there is no FILE.pods"] if self._places else []), []
        missing = [place for digest, place in self._places.items() if digest not in pods]
        if not missing:
            return [], pods.faults
        if pods.has_old:
            return [f"{_pods(len(missing))} gone: FILE.pods was full, and newer ones replaced them"], pods.faults
        absent = f"cut out: {_pods(len(missing))} not in FILE.pods, the first that of this record"
        return [], [*pods.faults, required(f"{missing[0]}: pod", f"{absent}; {REMEDY}")]


def _pods(number: int) -> str:
    return "1 pod that a record names is" if number == 1 else f"{number} pods that records name are"
