"""The order of test files, the processes that run them, and what these report.

The tests of a file run in one process, in their order. Only a few processes run files that need a running control
plane, since each of these processes starts one: API server and etcd take more processor time than most tests.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadFileScheduling

MOST_CONTROL_PLANES = 2
_GROUP = "control-plane"
_SUFFIX = f"@{_GROUP}"
_PROCESS = "PYTEST_XDIST_WORKER"
# `--durations` does not list what is shorter.
_SHORTEST_SECONDS = 0.005


class Distribution(LoadFileScheduling):  # type: ignore[misc] # the package has no types
    """Give each process a file at a time, the first in the queue that it may run."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._with_control_plane: set[object] = set()
        self._places: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        """Return the file of a test, with the suffix if it needs a control plane."""
        return str(super()._split_scope(nodeid)) + (_SUFFIX if nodeid.endswith(_SUFFIX) else "")

    def _assign_work_unit(self, node: Any) -> None:
        """Give the process a file; none if all that are left need a control plane that it may not start."""
        self._with_control_plane &= {*self.nodes}
        may_start = node in self._with_control_plane or len(self._with_control_plane) < MOST_CONTROL_PLANES
        file = next((each for each in self.workqueue if may_start or not each.endswith(_SUFFIX)), None)
        if file is None:
            return
        if file.endswith(_SUFFIX):
            self._with_control_plane.add(node)
        unit = self.workqueue.pop(file)
        self.assigned_work[node][file] = unit
        # The original searches the list of all tests for each.
        self._places = self._places or {test: place for place, test in enumerate(self.collection)}
        node.send_runtest_some([self._places[test] for test, is_done in unit.items() if not is_done])

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Mark the test as done, and forget its file if it was the last: all assigned tests are counted each time."""
        super().mark_test_complete(node, item_index, duration)
        files = self.assigned_work[node]
        file = self._split_scope(self.collection[item_index])
        if all(files[file].values()):
            del files[file]


def distribute(items: list[pytest.Item], needs_control_plane: Callable[[pytest.Item], bool], *, is_there: bool) -> None:
    """Sort the items for a run in several processes, and mark those of files that need a control plane.

    The longest files come first, so that no process ends long after the others. Those that need a control plane come
    before them, but after them if its programs have yet to be built (not `is_there`).
    """
    sizes = Counter(map(_file_of, items))
    slow = Counter(_file_of(item) for item in items if item.get_closest_marker("slow"))
    on_control_plane = {_file_of(item) for item in items if needs_control_plane(item)}

    def place(item: pytest.Item) -> tuple[int, int, int, str]:
        file = _file_of(item)
        turn = (0 if is_there else 2) if file in on_control_plane else 1
        return turn, -slow[file], -sizes[file], file

    items.sort(key=place)
    for item in items:
        if _file_of(item) in on_control_plane:
            item.add_marker(pytest.mark.xdist_group(_GROUP))


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def run_with_few_reports(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the test and report its call, and its set-up and teardown if they fail or take time.

    pytest-xdist would send six messages for each test, which take more processor time than a short test does.

    Return None, so that pytest runs it, if more than a letter is printed or written for each test, if the run ends at
    the first failures, or in the process that prints.
    """
    option = item.config.option
    reports_all = option.verbose > 0 or option.xmlpath or option.maxfail or option.durations_min is not None
    if reports_all or _PROCESS not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if is_reported(report):
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def is_reported(report: pytest.TestReport) -> bool:
    """Return False for a phase of which a run prints nothing."""
    return report.when == "call" or not report.passed or report.duration >= _SHORTEST_SECONDS
