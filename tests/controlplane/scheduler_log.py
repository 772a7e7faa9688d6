"""Read kube-scheduler's log: the objects that it has received, and its scores."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.controlplane.polling import DEADLINE_SECONDS, wait_for

Scores = dict[str, dict[str, int]]

_ATTEMPT = re.compile(r'"Attempting to schedule pod" pod="(?P<pod>[^"]+)"')
_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="(?P<pod>[^"]+)" plugin="(?P<plugin>[^"]+)" node="(?P<node>[^"]+)" '
    r"score=(?P<score>-?\d+)"
)
_REFUSED = re.compile(r'"Unable to schedule pod; no fit; waiting" pod="(?P<pod>[^"]+)" err=(?P<text>"(?:[^"\\]|\\.)*")')


class SchedulerLog:
    """The log file of a scheduler; it may not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def end(self) -> int:
        """Return the offset in bytes of the current end of the file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def lines(self, since: int = 0) -> Iterator[str]:
        """Yield the lines from offset `since` on."""
        if self.path.exists():
            with self.path.open("rb") as log:
                log.seek(since)
                for line in log:
                    yield line.decode(errors="replace")

    def wait_for_events(
        self,
        event: str,
        what: str,
        names: Iterable[str],
        *,
        since: int,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """Return when the scheduler has handled `event` of each of the objects.

        Nodes and pods come to it by separate watches, in no common order: a pod made after a node may be
        scheduled before the scheduler knows the node. `event` is its own wording, as in "Add event for node";
        `what` is the field of the line that names the object, as `node` or `pod`.

        Source: k8s.io/kubernetes/pkg/scheduler/eventhandlers.go
        """
        missing = set(names)
        wording = re.compile(rf'"{re.escape(event)}" (?:.* )?{what}="([^"]+)"')
        offset = since

        def all_seen() -> bool:
            nonlocal offset
            for line in self.lines(offset):
                if not line.endswith("\n"):
                    break
                offset += len(line.encode())
                if found := wording.search(line):
                    missing.discard(found.group(1))
            return not missing

        def what_for() -> str:
            return f"kube-scheduler: {event}: {', '.join(sorted(missing)[:5])}"

        wait_for(all_seen, what_for, deadline_seconds=deadline_seconds)


def scores_from_log(lines: Iterable[str], pod: str) -> Scores:
    """Return `{node: {plugin: weighted score}}` of the latest attempt at `namespace/name`.

    The log has them from level 10 on of schedule_one.go.
    Empty where there was nothing to choose: kube-scheduler scores only if several nodes are feasible. A plugin
    that skipped the pod is absent.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go prioritizeNodes
    """
    scores: Scores = {}
    for line in lines:
        if (attempt := _ATTEMPT.search(line)) and attempt["pod"] == pod:
            scores = {}
        elif (scored := _SCORED.search(line)) and scored["pod"] == pod:
            scores.setdefault(scored["node"], {})[scored["plugin"]] = int(scored["score"])
    return scores


def first_refusal_from_log(lines: Iterable[str], pod: str) -> str | None:
    """Return kube-scheduler's message when it first found no node for `namespace/name`; None if there is none.

    It takes the nomination of a pod back that it finds no node for, and may say something else the next time.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go handleSchedulingFailure
    """
    for line in lines:
        if (refused := _REFUSED.search(line)) and refused["pod"] == pod:
            return str(json.loads(refused["text"]))
    return None
