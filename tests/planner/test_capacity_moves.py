"""What is printed about a search for room that found no moves."""

import pytest

from placement_planner.capacity.make_room import Tried
from placement_planner.capacity_moves import _tried


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize(
    ("sets", "moves", "nodes", "first"),
    [
        (0, 0, 0, "no moves make room: no node could be freed of enough pods"),
        (0, 0, 2, "no moves make room: 2 nodes could be freed of enough pods"),
        (1, 1, 1, "no moves make room: 1 set of 1 pod tried on 1 node"),
        (5, 3, 2, "no moves make room: 5 sets of 1 to 3 pods tried on 2 nodes"),
    ],
)
def test_the_extent_of_a_search_is_stated(sets: int, moves: int, nodes: int, first: str, *, is_complete: bool) -> None:
    found = [*_tried(Tried(nodes, sets, moves, is_complete, {"b": 1, "a": 1, "c": 2}))]

    early = [] if is_complete else ["the search ended early: not every set was tried"]
    unmovable = ["not moved: 2 pods c", "not moved: 1 pod a", "not moved: 1 pod b"]
    assert found == [first, *early, *unmovable]
