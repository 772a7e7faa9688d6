"""The order of test files, and the processes that run them.

The tests of a file run in one process, in their order. The files that need a running control plane are divided between
a few processes, so that no other process starts one: its API server and etcd take more processor time than most tests.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from xdist.scheduler import LoadFileScheduling

MOST_CONTROL_PLANES = 2


class Distribution(LoadFileScheduling):  # type: ignore[misc] # the package has no types
    """Give each process a file at a time, or all files of a group (the end of a node ID after `@`)."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.rfind("@") > nodeid.rfind("]"):
            return nodeid.rpartition("@")[2]
        return str(super()._split_scope(nodeid))


def distribute(items: list[pytest.Item], needs_control_plane: Callable[[pytest.Item], bool], *, is_there: bool) -> None:
    """Sort the items for a run in several processes, and mark those of each control plane as a group.

    The longest files come first, so that no process ends long after the others. Those that need a control plane come
    before them, but after them if its programs have yet to be built (not `is_there`).
    """
    sizes = Counter(item.nodeid.partition("::")[0] for item in items)
    slow = Counter(item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("slow"))
    on_control_plane = {item.nodeid.partition("::")[0] for item in items if needs_control_plane(item)}
    tests = [0] * MOST_CONTROL_PLANES
    groups: dict[str, int] = {}
    for file in sorted(on_control_plane, key=lambda file: (-sizes[file], file)):
        groups[file] = tests.index(min(tests))
        tests[groups[file]] += sizes[file]

    def place(item: pytest.Item) -> tuple[int, int, int, str]:
        file = item.nodeid.partition("::")[0]
        if file in groups:
            return (0 if is_there else 2), groups[file], 0, file
        return 1, -slow[file], -sizes[file], file

    items.sort(key=place)
    for item in items:
        group = groups.get(item.nodeid.partition("::")[0])
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(f"control-plane-{group}"))
