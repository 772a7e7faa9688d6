"""The report as text: what its figures count, and how old cards are that are held."""

from io import StringIO

import pytest
from rich.console import Console

from placement_reclaim.effects import Effects
from placement_reclaim.held import Held, Remedy, Since
from placement_reclaim.text import print_report, to_json
from tests.support.objects.held import CARD, HOUR
from tests.support.objects.held import NOW_SECONDS as NOW

MINUTE, DAY = 60, 24 * HOUR
NOTHING = Effects((), (), ())


def held(cards: dict[str, int], *nodes: str, since: Since = Since(NOW), is_down: bool = False) -> Held:  # noqa: B008
    return Held("image-pull", cards, nodes, "team-a", "srv", since, "why", Remedy("owner"), is_down=is_down)


def printed(*rows: Held) -> str:
    console = Console(file=StringIO(), width=120)
    print_report(console, rows, {CARD: 16, "amd.com/gpu": 8}, NOTHING, NOW, "kubectl")
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_cards_on_usable_nodes_are_those_that_nodes_offer_on_nodes_that_are_not_down() -> None:
    """Devices of claims and quota have other names or no node, so they are no part of the total."""
    rows = [
        held({CARD: 3, "amd.com/gpu": 1}, "n1"),
        held({"gpu.nvidia.com": 5}, "n2"),
        held({CARD: 7}),
        held({CARD: 2, "gpu.nvidia.com": 6}, "n3", is_down=True),
    ]

    titles = [each for each in printed(*rows).splitlines() if each.startswith("held on ")]

    assert titles == [
        "held on usable nodes: 4 of 24 cards, 3 holders",
        "held on nodes that are down: 8 cards, 1 holder; no other pod can use them",
    ]


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (0, "0m"),
        (MINUTE - 1, "0m"),
        (MINUTE, "1m"),
        (HOUR - 1, "59m"),
        (HOUR, "1h"),
        (2 * HOUR + 10 * MINUTE, "2h10m"),
        (DAY - 1, "23h59m"),
        (DAY, "1d"),
        (DAY + 59 * MINUTE, "1d"),
        (3 * DAY + 4 * HOUR + 5 * MINUTE, "3d4h"),
    ],
)
@pytest.mark.parametrize(
    ("is_least", "is_known", "shown"),
    [(False, True, "{}"), (True, True, "at least {}"), (False, False, "unknown")],
)
def test_the_age_of_a_row(seconds: int, age: str, is_least: bool, is_known: bool, shown: str) -> None:
    row = held({CARD: 1}, "n1", since=Since(NOW - seconds, is_least, is_known))

    assert f" {shown.format(age)} " in printed(row)
    (found,) = to_json([row], {}, NOTHING, NOW, "kubectl")["held"]
    assert (found["since"] is not None, found["seconds"], found["atLeast"]) == (
        is_known,
        seconds if is_known else None,
        is_least,
    )
