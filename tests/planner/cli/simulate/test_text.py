"""The tables and the plot of several runs: each number is a mean over the seeds."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from placement_planner.cli.simulate.text import print_outcomes, svg
from placement_planner.simulation.outcome import Evictions, Outcome, Sample, Unplaced, Waits

ALL = Waits("all", "", 10, 1, 60, 3600)
RUN = Outcome(
    policy="p.yaml",
    profile="",
    seed=1,
    nodes=2,
    cards=16,
    pods=10,
    denied=0,
    placed=9,
    allocated=50,
    most_allocated=75,
    last_allocated=25,
    fragmented=5,
    waits=(ALL,),
    series=(Sample(0, 0, 0, 0), Sample(100, 100, 0, 0)),
)


def rows(*outcomes: Outcome, under: str) -> list[list[str]]:
    """Return the cells after those of the configuration in the table under a heading."""
    out = StringIO()
    print_outcomes(Console(file=out, width=200), outcomes)
    _, _, table = out.getvalue().partition(f"{under}\n")
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [re.split(r"\s{2,}", line.strip())[2:] for line in lines]


def waits(by: str, value: str, pods: int, never: int, p50: float | None, p99: float | None) -> Waits:
    return Waits(by, value, pods, never, p50, p99)


def test_pods_of_a_value_are_means_over_all_runs_and_their_waits_over_those_that_have_it() -> None:
    """The second seed has no pod with 8 cards, and placed none with 10."""
    first = (ALL, waits("cards", "8", 10, 4, 10, 30), waits("cards", "10", 2, 0, 4, 6))
    second = (ALL, waits("cards", "10", 4, 4, None, None))
    runs = replace(RUN, waits=first), replace(RUN, seed=2, waits=second)

    assert rows(*runs, under="By the cards that a pod requests:") == [
        ["8", "5", "10 s", "30 s", "2"],
        ["10", "3", "4 s", "6 s", "2"],
    ]


def test_evictions_are_means_over_all_runs_also_of_a_priority_that_one_run_has() -> None:
    first = Evictions(-5, 3, 1, 1.5, 12), Evictions(10, 1, 0, 1, 8)
    runs = replace(RUN, evictions=first), replace(RUN, seed=2, evictions=(Evictions(10, 2, 2, 2, 4),))

    assert rows(*runs, under="Evicted, by the priority of the victims:") == [
        ["-5", "1.5", "0.5", "0.75", "6.00"],
        ["10", "1.5", "1", "1.50", "6.00"],
        ["all", "3", "1.5", "2.25", "12.00"],
    ]


def test_reasons_are_those_of_the_most_pods_in_all_runs() -> None:
    first = Unplaced(4, "a"), Unplaced(3, "b"), Unplaced(2, "c"), Unplaced(1, "d")
    runs = replace(RUN, unplaced=first), replace(RUN, seed=2, unplaced=(Unplaced(4, "d"), Unplaced(3, "b")))

    assert rows(*runs, under="Never placed, and why:") == [["3", "b"], ["2.5", "d"], ["2", "a"]]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (("0", "-10", "9", "10"), ["-10", "0", "9", "10"]),
        (("5",), []),
    ],
)
def test_priorities_are_in_the_order_of_numbers_and_one_of_all_pods_has_no_table(
    values: tuple[str, ...], wanted: list[str]
) -> None:
    outcome = replace(RUN, waits=(ALL, *(waits("priority", each, 1, 0, 1, 1) for each in values)))

    assert [cells[0] for cells in rows(outcome, under="By priority:")] == wanted


@pytest.mark.parametrize("begin", [0, 100, 5000])
def test_the_plot_begins_with_the_first_arrival_and_ends_with_the_last_one_of_the_longest_run(begin: int) -> None:
    short = replace(RUN, series=(Sample(begin, 0, 0, 0), Sample(begin + 50, 100, 0, 0)))
    long = replace(RUN, profile="binpack", series=(Sample(7, 20, 0, 0), Sample(107, 80, 0, 0)))

    found = re.findall(r'<polyline points="([^"]*)"', svg([short, long]))

    assert found == ["60.0,310.0 380.0,30.0", "60.0,254.0 700.0,86.0"]


def test_the_line_of_several_seeds_is_their_mean_as_long_as_all_of_them_last() -> None:
    other = replace(RUN, seed=2, series=(Sample(10, 20, 0, 0), Sample(60, 50, 0, 0), Sample(110, 0, 0, 0)))

    (points,) = re.findall(r'<polyline points="([^"]*)"', svg([RUN, other]))

    assert points == "60.0,282.0 540.0,100.0"
