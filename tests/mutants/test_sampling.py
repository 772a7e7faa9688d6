"""The sample follows from seed and code alone, and every package has its part of it."""

import pytest

from tests.mutants.finding import Mutant, find_mutants
from tests.mutants.sampling import sample, shares

SOURCE = "".join(f"x = a{number} == b\n" for number in range(100))


def mutants(path: str, source: str = SOURCE) -> list[Mutant]:
    return find_mutants(path, source)


def drawn(found: list[Mutant], seed: int = 1, total: int = 30) -> set[tuple[str, str]]:
    return {(mutant.site, mutant.operator) for each in sample(found, seed, total).values() for mutant in each}


def test_the_same_seed_draws_the_same_sample() -> None:
    assert drawn(mutants("webhook/module.py")) == drawn(mutants("webhook/module.py"))


def test_another_seed_draws_another_sample() -> None:
    assert drawn(mutants("webhook/module.py"), seed=1) != drawn(mutants("webhook/module.py"), seed=2)


def test_a_sample_stays_when_the_module_moves_and_lines_come_before() -> None:
    moved = mutants("webhook/kube/module.py", f"import os\n\n\n{SOURCE}")

    assert drawn(moved) == drawn(mutants("webhook/module.py"))


def test_no_two_mutants_of_a_sample_change_the_same_place() -> None:
    chosen = sample(mutants("webhook/module.py"), 1, 60)["webhook"]

    assert len(chosen) == 60
    assert len({mutant.line for mutant in chosen}) == 60


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        ({"a": 1000, "b": 100}, 100, {"a": 80, "b": 20}),
        ({"a": 600, "b": 400}, 100, {"a": 60, "b": 40}),
        ({"a": 1000, "b": 5}, 100, {"a": 95, "b": 5}),
        ({"a": 10, "b": 5}, 100, {"a": 10, "b": 5}),
        ({"a": 1000, "b": 1000}, 10, {"a": 20, "b": 20}),
    ],
)
def test_a_sample_is_divided_by_size_with_at_least_twenty_each(
    sizes: dict[str, int], total: int, expected: dict[str, int]
) -> None:
    assert shares(sizes, total) == expected
