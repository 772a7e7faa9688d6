"""A requirement and the user's expressions: implied, contradicted, or neither; checked by brute force."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.work import calls_of
from webhook.kube.selectors import requirement_matches
from webhook.mutation.edits.node_terms import NodeLabelRequirement

Expression = dict[str, Any]

KEY = "k"
# Bounds and lists come from the first half; the second lets every bound be passed, and every list be missed.
LISTED = ["a", "b", "", *map(str, range(10))]
UNIVERSE = [*LISTED, "c", *map(str, range(10, 21)), *(f"{number:03}" for number in range(21))]


def expression(operator: str, *values: str, key: str = KEY) -> Expression:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def satisfying(expressions: list[Expression]) -> set[str | None]:
    """The label values of the universe, None for no label, that satisfy all `expressions`."""
    candidates: list[str | None] = [None, *UNIVERSE]
    return {
        value
        for value in candidates
        if all(requirement_matches(each, {} if value is None else {KEY: value}) for each in expressions)
    }


listed = st.lists(st.sampled_from(LISTED), min_size=1, max_size=4, unique=True)
bounds = st.sampled_from([str(number) for number in range(10)])
# Products, which NotIn excludes, are no integers.
names = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)
requirements = (
    listed.map(lambda values: NodeLabelRequirement(KEY, "In", tuple(values)))
    | bounds.map(lambda bound: NodeLabelRequirement(KEY, "Gt", (bound,)))
    | names.map(lambda values: NodeLabelRequirement(KEY, "NotIn", tuple(values)))
    | st.just(NodeLabelRequirement(KEY, "Exists"))
)
expressions = (
    st.builds(lambda operator, values: expression(operator, *values), st.sampled_from(["In", "NotIn"]), listed)
    | st.builds(expression, st.sampled_from(["Gt", "Lt"]), bounds)
    | st.sampled_from([expression("Exists"), expression("DoesNotExist")])
)


def admitted_by(requirement: NodeLabelRequirement) -> set[str | None]:
    """The label values of the universe, None for no label, that meet `requirement`."""
    return satisfying([requirement.to_json()])


@given(requirements, st.lists(expressions, max_size=4))
def test_a_contradiction_leaves_no_value(requirement: NodeLabelRequirement, user: list[Expression]) -> None:
    """And where the user's expressions, which some value satisfies, leave none with ours, it is want."""
    possible = satisfying(user)
    left = possible & admitted_by(requirement)

    want = requirement.contradiction(user)

    if want is not None:
        assert left == set()
    elif possible:
        assert left != set()


@given(requirements, st.lists(expressions, max_size=4))
def test_what_is_implied_admits_nothing_more(requirement: NodeLabelRequirement, user: list[Expression]) -> None:
    if requirement.is_implied_by(user):
        assert satisfying(user) <= admitted_by(requirement)


@given(requirements, expressions)
def test_expression_that_is_as_strict_implies_the_requirement(
    requirement: NodeLabelRequirement, one: Expression
) -> None:
    possible = satisfying([one])

    assert requirement.is_implied_by([one]) == (possible <= admitted_by(requirement)) or not possible


@given(requirements)
def test_a_requirement_implies_itself_and_contradicts_nothing_of_itself(requirement: NodeLabelRequirement) -> None:
    assert requirement.equals(requirement.to_json())
    assert requirement.is_implied_by([requirement.to_json()])
    assert requirement.contradiction([requirement.to_json()]) is None


IN_AB = NodeLabelRequirement(KEY, "In", ("a", "b"))
ABOVE_7 = NodeLabelRequirement(KEY, "Gt", ("7",))
NOT_AB = NodeLabelRequirement(KEY, "NotIn", ("a", "b"))
NOT_7 = NodeLabelRequirement(KEY, "NotIn", ("a", "7"))
EXISTS = NodeLabelRequirement(KEY, "Exists")


@pytest.mark.parametrize(
    ("requirement", "user", "implied"),
    [
        (IN_AB, [], False),
        (IN_AB, [expression("In", "a")], True),
        (IN_AB, [expression("In", "b", "a")], True),
        (IN_AB, [expression("In", "a", "b", "c")], False),
        (IN_AB, [expression("In")], False),
        (IN_AB, [expression("NotIn", "c")], False),
        (IN_AB, [expression("Exists")], False),
        (IN_AB, [expression("DoesNotExist")], False),
        (IN_AB, [expression("In", "a", key="other")], False),
        (IN_AB, [expression("Exists"), expression("In", "a")], True),
        (ABOVE_7, [expression("Gt", "7")], True),
        (ABOVE_7, [expression("Gt", "8")], True),
        (ABOVE_7, [expression("Gt", "6")], False),
        (ABOVE_7, [expression("Lt", "8")], False),
        (ABOVE_7, [expression("In", "8", "16")], True),
        (ABOVE_7, [expression("In", "7", "16")], False),
        (ABOVE_7, [expression("In", "many")], False),
        (NOT_AB, [expression("In", "c")], True),
        (NOT_AB, [expression("In", "a", "c")], False),
        (NOT_AB, [expression("In")], False),
        (NOT_AB, [expression("NotIn", "a", "b", "c")], True),
        (NOT_AB, [expression("NotIn", "a")], False),
        (NOT_AB, [expression("DoesNotExist")], True),
        (NOT_AB, [expression("Exists")], False),
        (NOT_AB, [expression("Gt", "1")], True),
        (NOT_7, [expression("Gt", "7")], True),
        (NOT_7, [expression("Gt", "6")], False),
        (EXISTS, [expression("Exists")], True),
        (EXISTS, [expression("In", "a")], True),
        (EXISTS, [expression("Gt", "1")], True),
        (EXISTS, [expression("NotIn", "a")], False),
        (EXISTS, [expression("DoesNotExist")], False),
    ],
)
def test_implied(requirement: NodeLabelRequirement, user: list[Expression], implied: bool) -> None:
    assert requirement.is_implied_by(user) is implied


@pytest.mark.parametrize(
    ("requirement", "user", "want"),
    [
        (IN_AB, [expression("In", "b", "c")], None),
        (IN_AB, [expression("In", "c", "d")], "k In [c, d] contradicts the policy's k in [a, b]"),
        (IN_AB, [expression("NotIn", "a")], None),
        (IN_AB, [expression("NotIn", "a", "b")], "k NotIn [a, b] contradicts the policy's k in [a, b]"),
        (
            IN_AB,
            [expression("NotIn", "a"), expression("NotIn", "b")],
            "k NotIn [a] contradicts the policy's k in [a, b]",
        ),
        (
            IN_AB,
            [expression("In", "a"), expression("In", "b", "c")],
            "k In [a] contradicts the policy's k in [a, b]",
        ),
        (IN_AB, [expression("In", "a", "c"), expression("In", "a", "b")], None),
        (ABOVE_7, [expression("In", "8"), expression("In", "9")], "k In [8] contradicts the policy's k > 7"),
        (IN_AB, [expression("Exists")], None),
        (IN_AB, [expression("DoesNotExist")], "k DoesNotExist contradicts the policy's k in [a, b]"),
        (IN_AB, [expression("Gt", "7")], "k Gt [7] contradicts the policy's k in [a, b]"),
        (IN_AB, [expression("In", "c", key="other")], None),
        (ABOVE_7, [expression("Lt", "9")], None),
        (ABOVE_7, [expression("Lt", "8")], "k Lt [8] contradicts the policy's k > 7"),
        (ABOVE_7, [expression("Gt", "9")], None),
        (ABOVE_7, [expression("In", "7", "8")], None),
        (ABOVE_7, [expression("In", "7")], "k In [7] contradicts the policy's k > 7"),
        (ABOVE_7, [expression("In", "8"), expression("NotIn", "8")], "k In [8] contradicts the policy's k > 7"),
        (ABOVE_7, [expression("DoesNotExist")], "k DoesNotExist contradicts the policy's k > 7"),
        (ABOVE_7, [expression("NotIn", "8")], None),
        (NOT_AB, [expression("In", "b")], "k In [b] contradicts the policy's k not in [a, b]"),
        (NOT_AB, [expression("In", "b", "c")], None),
        (
            NOT_AB,
            [expression("In", "b", "c"), expression("NotIn", "c")],
            "k In [b, c] contradicts the policy's k not in [a, b]",
        ),
        (NOT_AB, [expression("DoesNotExist")], None),
        (EXISTS, [expression("DoesNotExist")], "k DoesNotExist contradicts the policy's k exists"),
        (EXISTS, [expression("NotIn", "a")], None),
    ],
)
def test_contradiction(requirement: NodeLabelRequirement, user: list[Expression], want: str | None) -> None:
    assert requirement.contradiction(user) == want


def test_a_contradiction_names_three_values_at_most() -> None:
    of_the_policy = NodeLabelRequirement(KEY, "In", ("a", "b", "c", "d"))
    assert IN_AB.contradiction([expression("In", "c", "d", "e")]) == (
        "k In [c, d, e] contradicts the policy's k in [a, b]"
    )
    assert of_the_policy.contradiction([expression("In", "e", "f", "g", "h")]) == (
        "k In [e, f, g, …] contradicts the policy's k in [a, b, c, …]"
    )


@pytest.mark.parametrize(("values", "is_found"), [(100, True), (101, False)])
def test_a_contradiction_is_not_searched_among_more_than_ten_thousand_pairs(values: int, is_found: bool) -> None:
    names = [f"v{number}" for number in range(values)]
    requirement = NodeLabelRequirement("k", "In", tuple(names))
    want = requirement.contradiction([expression("NotIn", name) for name in names])
    assert (want is not None) is is_found


@pytest.mark.parametrize("user", [expression("Gt", "7"), expression("DoesNotExist"), expression("NotIn", "x")])
def test_a_term_is_not_compared_with_each_excluded_value(user: Expression) -> None:
    """A pod can have ten thousand terms, and a policy can exclude a thousand products."""
    few, many = (NodeLabelRequirement(KEY, "NotIn", tuple(f"v{each}" for each in range(n))) for n in (2, 1000))
    terms = [[user]] * 100

    def work(requirement: NodeLabelRequirement) -> int:
        return calls_of(lambda: [requirement.is_implied_by(term) for term in terms])

    assert work(many) < 2 * work(few) + 10 * 1000


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (expression("In", "a", "b"), True),
        (expression("In", "b", "a"), True),
        (expression("In", "a"), False),
        (expression("NotIn", "a", "b"), False),
        (expression("In", "a", "b", key="other"), False),
        ({}, False),
    ],
    ids=["the same", "another order", "fewer", "another operator", "another key", "nothing"],
)
def test_equal_but_for_the_order_of_values(other: Expression, equal: bool) -> None:
    assert IN_AB.equals(other) is equal
