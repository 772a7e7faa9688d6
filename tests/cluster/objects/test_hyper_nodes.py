"""The domains of a tier are its highest HyperNodes. Their nodes are those of all levels below."""

from typing import Any

import pytest

from tests.support.objects.batch_objects import hyper_node, named
from tests.support.plugins import node
from webhook.cluster.batch.network_topology import key_of_tier
from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.objects.hyper_nodes import HyperNode, HyperNodes, most_tries
from webhook.cluster.snapshot import Snapshot

Object = dict[str, Any]
CLUSTER = Snapshot.of(
    node(name, labels={"rack": rack} if rack else {})
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", ""), ("b2", ""))
)
A = hyper_node("a", 1, {"labelMatch": {"matchLabels": {"rack": "a"}}})
B = hyper_node("b", 1, *named("b1", "gone"), {"regexMatch": {"pattern": "^b[2-9]$"}})
ALL = hyper_node("all", 2, *named("a", "b", "gone"), of="HyperNode")


def hyper_nodes(*objects: Object) -> HyperNodes:
    return HyperNodes({each.name: each for each in map(HyperNode.of, objects)})


def domains(tier: int, *objects: Object) -> dict[str, str] | str:
    """Return the domain of each node, or the reason why they are not known."""
    found = hyper_nodes(*objects).domains(tier, CLUSTER.labels, CLUSTER.rows)
    if isinstance(found, str):
        return found
    codes, values = found.paths((key_of_tier(tier),))
    return {name: values[codes[row]][0] for name, row in CLUSTER.rows.items() if codes[row] >= 0}


RACKS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}


@pytest.mark.parametrize(
    ("tier", "objects", "expected"),
    [
        pytest.param(1, (A, B), RACKS, id="labels, names and patterns"),
        pytest.param(1, (A, B, ALL), RACKS, id="of a lower tier"),
        pytest.param(2, (A, B, ALL), dict.fromkeys(RACKS, "all"), id="of children"),
        pytest.param(2, (A, B), RACKS, id="without a parent"),
        pytest.param(0, (A, B, ALL), {}, id="of no tier"),
        pytest.param(1, (hyper_node("x", 2, *named("b1")), A), {"a1": "a", "a2": "a"}, id="members of a higher tier"),
        pytest.param(1, (hyper_node("x", 1, {"labelMatch": {}}),), {}, id="an empty selector"),
        pytest.param(
            1,
            (hyper_node("x", 1, {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}}),),
            {"b1": "x", "b2": "x"},
            id="an expression",
        ),
        pytest.param(
            1,
            (
                hyper_node(
                    "x", 1, {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "Gt", "values": ["0"]}]}}
                ),
            ),
            {},
            id="an operator of other selectors",
        ),
    ],
)
def test_node_is_in_the_highest_hyper_node_up_to_the_tier(
    tier: int, objects: tuple[Object, ...], expected: dict[str, str]
) -> None:
    assert domains(tier, *objects) == expected


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            (A, hyper_node("x", 1, *named("a1"))), "the HyperNodes a and x have nodes in common", id="overlap"
        ),
        pytest.param(
            (A, ALL, hyper_node("x", 2, *named("a"), of="HyperNode")),
            "HyperNode a is a member of two HyperNodes, so Volcano starts no such gang",
            id="two parents",
        ),
        pytest.param(
            (hyper_node("x", 1, *named("y"), of="HyperNode"), hyper_node("y", 1, *named("x"), of="HyperNode")),
            "HyperNode y is a member of one that is not of a higher tier",
            id="a cycle",
        ),
        *(
            pytest.param(
                (hyper_node("x", 1, {"regexMatch": {"pattern": each}}),),
                "the pattern of HyperNode x is not evaluated",
                id=each[:9],
            )
            for each in (
                "(a+)+b",
                "(?i)a",
                r"\pL",
                "[[:alpha:]]",
                "a++",
                "(",
                "a" * 257,
                f"a{{{10**20}}}",
                "a{,3}",
                "a{1001}",
                "{",
            )
        ),
    ],
)
def test_domains_are_not_known(objects: tuple[Object, ...], reason: str) -> None:
    assert domains(1, *objects) == reason


@pytest.mark.parametrize(
    ("pattern", "tries"),
    [
        ("^n1$", 1),
        ("n1", 11),
        ("^n[0-9]+$", 11),
        ("n.*-.*", 11 * 66),
        ("^.*.*.*$", 286),
        ("^a?b?c?$", 8),
        ("^a|b$", 11 * 2),
        ("(a|b)(a|c)", 11 * 3**2),
    ],
)
def test_tries_of_a_pattern_are_bounded(pattern: str, tries: int) -> None:
    assert most_tries(pattern, 10) == tries


def test_patterns_that_can_take_too_long_are_not_evaluated() -> None:
    names = [f"rack-12-node-{number:07}" for number in range(1000)]
    labels, rows = LabelColumns([{}] * len(names)), {name: row for row, name in enumerate(names)}
    cheap = hyper_nodes(
        *(hyper_node(f"h{rack}", 1, {"regexMatch": {"pattern": f"^rack-{rack}-.*$"}}) for rack in range(100))
    )
    costly = hyper_nodes(hyper_node("x", 1, {"regexMatch": {"pattern": "-.*.*.*.*x"}}))

    assert not isinstance(cheap.domains(1, labels, rows), str)
    assert costly.domains(1, labels, rows) == (
        "the pattern of HyperNode x can take too long: begin it with ^, with fewer repetitions"
    )


def test_chain_of_many_tiers_is_followed_to_its_end() -> None:
    chain = [hyper_node(f"h{tier}", tier, *named(f"h{tier - 1}"), of="HyperNode") for tier in range(2, 3000)]

    assert domains(2999, hyper_node("h1", 1, *named("a1")), *chain) == {"a1": "h2999"}


def test_tiers_have_names_and_an_end() -> None:
    found = hyper_nodes(A, ALL, hyper_node("x", 3, tier_name="zone"))

    assert (found.top, hyper_nodes().top) == (3, 0)
    assert (found.tiers_named("zone"), found.tiers_named("row"), found.tiers_named("")) == ({3}, set(), set())


def test_domains_are_read_again_if_nodes_change() -> None:
    nodes = hyper_nodes(B)
    before = nodes.domains(1, CLUSTER.labels, CLUSTER.rows)
    other = Snapshot.of([node("b3")])

    assert nodes.domains(1, CLUSTER.labels, CLUSTER.rows) is before
    found = nodes.domains(1, other.labels, other.rows)
    assert not isinstance(found, str)
    assert found.values(key_of_tier(1)) == {"b"}


def test_domains_are_those_of_the_nodes_at_hand() -> None:
    """The HyperNodes stay the same while nodes come and go."""
    found, larger = hyper_nodes(A, B), [node(name, labels={"rack": rack}) for name, rack in (("a0", "a"), ("b1", "x"))]
    others = Snapshot.of([*larger, node("a1", labels={"rack": ""})])

    for _ in range(2):
        for cluster, expected in ((CLUSTER, RACKS), (others, {"a0": "a", "b1": "b"})):
            labels = found.domains(1, cluster.labels, cluster.rows)
            assert isinstance(labels, LabelColumns)
            codes, values = labels.paths((key_of_tier(1),))
            assert {name: values[codes[row]][0] for name, row in cluster.rows.items() if codes[row] >= 0} == expected
            assert found.domains(1, cluster.labels, cluster.rows) is labels
