"""The orders of equally important pods."""

import numpy as np

from webhook.placement.preemption.orders import every_order, in_one


def test_pods_of_each_group_change_places_and_others_do_not() -> None:
    places, groups = np.array([3, 4, 6, 7, 9]), [np.array([3, 4]), np.array([7, 9])]

    found = every_order(places, groups, {})

    assert found is not None
    assert sorted(found.tolist()) == [[3, 4, 6, 7, 9], [3, 4, 6, 9, 7], [4, 3, 6, 7, 9], [4, 3, 6, 9, 7]]


def test_more_than_24_orders_are_not_listed() -> None:
    places = np.arange(7)
    assert every_order(places, [places[:5]], {}) is None
    assert every_order(places, [places[:4], places[4:6]], {}) is None


def test_the_orders_of_all_nodes_are_listed_one_after_the_other() -> None:
    places, order_of, numbers = in_one({2: np.array([[5, 6], [6, 5]]), 7: np.array([[8]])})

    assert places.tolist() == [5, 6, 6, 5, 8]
    assert order_of.tolist() == [0, 0, 1, 1, 2]
    assert numbers.tolist() == [2, 2, 7]
