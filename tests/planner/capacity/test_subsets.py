"""Sets of pods that free what a pending pod lacks."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from placement_planner.capacity.moves import replacement_of
from placement_planner.capacity.subsets import Candidate, fewest, sets_of
from tests.support.objects.moves import running
from webhook.cluster.pods.bound_pods import BoundPod

_POD = BoundPod.of(running("p", "a").obj())
_MOVE = (_POD, replacement_of(_POD))
_amounts = st.fixed_dictionaries({"cpu": st.integers(0, 3), "gpu": st.integers(0, 3)})


def _frees(amounts: list[dict[str, int]], missing: dict[str, int]) -> bool:
    return all(sum(each.get(name, 0) for each in amounts) >= amount for name, amount in missing.items())


def test_a_pod_frees_one_of_the_places_for_pods_of_its_node() -> None:
    freeable = [{"cpu": 1}, {"cpu": 2}, {}]
    candidates = [Candidate(_MOVE, each, kind) for kind, each in enumerate(freeable)]

    assert [fewest(freeable, {"pods": count}) for count in (1, 2, 3, 4)] == [1, 2, 3, None]
    assert fewest(freeable, {"pods": 1, "cpu": 3}) == 2
    found = sets_of(candidates, {"pods": 2, "cpu": 2}, 2, lambda: True)
    assert [[each.kind for each in some] for some in found] == [[0, 1], [1, 2]]


@given(
    st.lists(_amounts, min_size=1, max_size=7),
    st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(1, 8)),
    st.integers(1, 7),
)
def test_exactly_the_sets_that_free_enough_are_found(
    amounts: list[dict[str, int]], missing: dict[str, int], size: int
) -> None:
    candidates = [Candidate(_MOVE, each, kind) for kind, each in enumerate(amounts)]

    found = [tuple(each.kind for each in chosen) for chosen in sets_of(candidates, missing, size, lambda: True)]

    every = combinations(range(len(amounts)), size)
    assert found == [kinds for kinds in every if _frees([amounts[kind] for kind in kinds], missing)]
    least = fewest(amounts, missing)
    assert least is not None if _frees(amounts, missing) else least is None
    if found and least is not None:
        assert least <= size


@given(st.lists(st.tuples(_amounts, st.booleans()), min_size=1, max_size=7), st.integers(1, 4))
def test_of_interchangeable_pods_one_set_is_found(pods: list[tuple[dict[str, int], bool]], size: int) -> None:
    amounts = [{"gpu": each["gpu"]} for each, _ in pods]
    kinds = [(each["gpu"], other) for each, (_, other) in zip(amounts, pods, strict=True)]
    candidates = [Candidate(_MOVE, each, kind) for each, kind in zip(amounts, kinds, strict=True)]

    found = [Counter(each.kind for each in chosen) for chosen in sets_of(candidates, {}, size, lambda: True)]

    every = [Counter(each) for each in combinations(kinds, size)]
    assert all(each in found for each in every)
    assert all(each in every for each in found)


def test_the_search_ends_when_a_step_is_refused() -> None:
    candidates = [Candidate(_MOVE, {}, kind) for kind in range(30)]
    left = iter([True] * 10)

    assert len(list(sets_of(candidates, {}, 2, lambda: next(left, False)))) < 10
