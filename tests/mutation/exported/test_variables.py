"""What an exported policy reads of a pod."""

import pytest

from tests.mutation.exported.exporting import exported, variables_of


@pytest.mark.parametrize(
    ("resource", "counts"),
    [("nvidia.com/gpumem", True), ("hygon.com/dcucores", True), ("volcano.sh/vgpu-number", False)],
    ids=["memory of a card", "cores of a card", "a number of cards"],
)
def test_share_of_a_card_requests_one_with_any_amount(resource: str, *, counts: bool) -> None:
    """With an amount of zero, a share is the default of its scheduler, and a number is no card."""
    _, or_else, of_any_amount = variables_of(exported())["resources"].partition('r[n] != "0" || ')

    assert or_else
    assert (f'"{resource}"' in of_any_amount) is counts
