"""The bound of the pods of several roles: never below what the nodes hold."""

from functools import cache

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.placement.gang.gang_bound import Role, most_on_empty_nodes, most_together

amounts = st.tuples(st.integers(0, 4), st.integers(1, 4))


# Each role is short of another resource.
@example(nodes=[(1, 4)], roles=[(1, (0, 3)), (1, (1, 1))])
@given(
    nodes=st.lists(amounts, min_size=1, max_size=3),
    roles=st.lists(st.tuples(st.integers(1, 3), amounts), min_size=1, max_size=3),
)
def test_bound_is_never_below_what_the_nodes_hold(
    nodes: list[tuple[int, int]], roles: list[tuple[int, tuple[int, int]]]
) -> None:
    snapshot = Snapshot.of(
        [
            node(f"n{number}", capacity={"nvidia.com/gpu": str(cards), "cpu": str(cpus)})
            for number, (cards, cpus) in enumerate(nodes)
        ]
    )
    every = np.ones(len(nodes), dtype=np.bool_)
    asked = [
        Role(pod_info(make_pod().requests(cpu=str(cpus)).gpu(cards)), count, every, snapshot)
        for count, (cards, cpus) in roles
    ]

    assert most_together(asked, never) >= most_held(tuple(nodes), tuple(roles))


def test_anti_affinity_bounds_the_pods_of_a_domain_and_none_outside_of_domains() -> None:
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]}
    info = pod_info(make_pod().gpu(1).affinity({"podAntiAffinity": apart}))
    zone, cards = {"zone": "z"}, {"nvidia.com/gpu": "4"}
    snapshot = Snapshot.of([node("a", labels=zone, capacity=cards), node("b", labels=zone, capacity=cards)])
    outside = Snapshot.of([node("a", labels=zone, capacity=cards), node("b", capacity=cards)])

    every = np.ones(2, dtype=np.bool_)
    assert [most_on_empty_nodes(info, each, every, never) for each in (snapshot, outside)] == [1, 5]


@cache
def most_held(nodes: tuple[tuple[int, int], ...], roles: tuple[tuple[int, tuple[int, int]], ...]) -> int:
    """Return the largest number of pods that the nodes hold, by trying all ways."""
    best = 0
    for place, (count, (cards, cpus)) in enumerate(roles):
        left = (*roles[:place], (count - 1, (cards, cpus)), *roles[place + 1 :])
        for number, (free_cards, free_cpus) in enumerate(nodes if count else ()):
            if cards <= free_cards and cpus <= free_cpus:
                rest = (*nodes[:number], (free_cards - cards, free_cpus - cpus), *nodes[number + 1 :])
                best = max(best, 1 + most_held(rest, left))
    return best


def test_roles_that_are_alike_are_bounded_as_one() -> None:
    snapshot = Snapshot.of([node(name, capacity={"nvidia.com/gpu": "12"}) for name in "ab"])
    every = np.ones(2, dtype=np.bool_)
    large, small = pod_info(make_pod().gpu(8)), pod_info(make_pod().gpu(4))

    assert most_together([Role(large, 1, every, snapshot), Role(large, 2, every, snapshot)], never) == 2
    assert most_together([Role(large, 2, every, snapshot), Role(small, 2, every, snapshot)], never) == 4
    assert most_together([Role(large, 3, every, snapshot), Role(small, 2, every, snapshot)], never) == 4
