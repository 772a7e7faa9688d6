"""The queue of pods to place."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.serving.waiting.placing_queue import PlacingQueue, QueueOrder

_ORDERS = st.builds(
    lambda number, priority, created: QueueOrder(-priority, created, number),
    st.integers(0, 9),
    st.integers(0, 2),
    st.sampled_from(("a", "b")),
)


@given(st.lists(st.one_of(_ORDERS, st.integers(0, 9)), max_size=200))
def test_pods_leave_in_their_order_once_each(steps: list[QueueOrder | int]) -> None:
    queue = PlacingQueue()
    expected: dict[int, QueueOrder] = {}
    for step in steps:
        if isinstance(step, QueueOrder):
            queue.put(step)
            expected[step.number] = step
        else:
            queue.discard(step)
            expected.pop(step, None)
    assert len(queue) == len(expected)
    assert [queue.take() for _ in expected] == [order.number for order in sorted(expected.values())]
    assert queue.take() is None


def test_discarded_pods_take_no_memory() -> None:
    queue = PlacingQueue()
    for number in range(10_000):
        queue.put(QueueOrder(0, "", number))
        queue.discard(number)
    assert len(queue._heap) < 100
