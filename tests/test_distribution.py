"""The files of a run in several processes, a control plane in two of them at most; what the processes report."""

from types import SimpleNamespace
from typing import Any, Literal

import pytest
from xdist.remote import Producer

from tests.support.distribution import MOST_CONTROL_PLANES, Distribution, is_reported, run_with_few_reports

# A process is given the next file before its last ends, and the counts of all that it was given take time.
MOST_FILES = 3
Phase = Literal["setup", "call", "teardown"]
Result = Literal["passed", "failed", "skipped"]

PLAIN = [f"tests/test_plain_{number}.py::test_a" for number in range(12)]
ON_CONTROL_PLANE = [f"tests/test_served_{number}.py::test_a[x]@control-plane" for number in range(4)]


class Process:
    """A worker that notes the tests it is given."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def run(tests: list[str], processes: int) -> list[list[str]]:
    """Return the tests of each process; the processes end their tests by turns."""
    options = SimpleNamespace(loadscopereorder=False)
    config: Any = SimpleNamespace(getvalue=lambda _: [f"{processes}*popen"], option=options)
    scheduling = Distribution(config, Producer("test", enabled=False))
    workers = [Process() for _ in range(processes)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)
    scheduling.schedule()
    done = [0] * processes
    while not scheduling.tests_finished or any(len(each.given) > at for each, at in zip(workers, done, strict=True)):
        for number, worker in enumerate(workers):
            if len(worker.given) > done[number]:
                scheduling.mark_test_complete(worker, worker.given[done[number]])
                done[number] += 1
        assert all(len(files) <= MOST_FILES for files in scheduling.assigned_work.values())
    return [[tests[index] for index in worker.given] for worker in workers]


def test_each_test_runs_once_and_two_processes_have_a_control_plane() -> None:
    given = run([*ON_CONTROL_PLANE, *PLAIN], processes=3)

    assert sorted(name for each in given for name in each) == sorted([*ON_CONTROL_PLANE, *PLAIN])
    assert sum(not {*ON_CONTROL_PLANE}.isdisjoint(each) for each in given) == MOST_CONTROL_PLANES


def test_the_tests_of_a_file_share_a_process() -> None:
    tests = [f"tests/test_{file}.py::test_{number}" for file in "abc" for number in range(5)]
    given = run(tests, processes=2)

    assert all(len({name.partition("::")[0] for name in each}) * 5 == len(each) for each in given)


def a_report(when: Phase, outcome: Result = "passed", seconds: float = 0.0) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid="a", location=("a", 1, "a"), keywords={}, outcome=outcome, longrepr=None, when=when, duration=seconds
    )


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_what_has_not_passed_is_reported(when: Phase, outcome: Result) -> None:
    assert is_reported(a_report(when, outcome))


def test_of_what_has_passed_the_call_and_long_phases_are_reported() -> None:
    assert is_reported(a_report("call"))
    assert is_reported(a_report("setup", seconds=0.005))
    assert is_reported(a_report("teardown", seconds=0.005))
    assert not is_reported(a_report("setup", seconds=0.0049))
    assert not is_reported(a_report("teardown", seconds=0.0049))


@pytest.mark.parametrize(
    "option",
    [{"verbose": 1}, {"xmlpath": "junit.xml"}, {"maxfail": 1}, {"durations_min": 0.0}],
    ids=("lines", "a file", "an early end", "short phases"),
)
def test_pytest_runs_and_reports_all_where_a_report_is_read(
    option: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    options = SimpleNamespace(**{"verbose": 0, "xmlpath": None, "maxfail": 0, "durations_min": None} | option)
    item: Any = SimpleNamespace(config=SimpleNamespace(option=options))

    assert run_with_few_reports(item, None) is None
