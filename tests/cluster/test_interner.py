"""Equal values are kept once, in bounded memory."""

from webhook.cluster.interner import Interner


def test_values_that_are_shared_take_bounded_memory() -> None:
    """Users decide how large labels are, and pods come and go."""
    interner, size = Interner(), 1024 * 1024
    for number in range(100):
        interner.known_or({str(number): "x" * size}, number)
    assert len(interner._known) <= 17
    assert interner.known_or({"new": "x"}, 99) == {"99": "x" * size}
