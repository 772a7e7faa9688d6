"""The syntax of selectors of devices, and its bounds."""

import pytest

from tests.kube.cel.device_selectors import holds
from tests.support.work import calls_of
from webhook.kube.cel.expression import Expression
from webhook.kube.cel.syntax import MOST_TOKENS


def test_parentheses_do_not_count_as_depth() -> None:
    assert holds("(" * 400 + "true" + ")" * 400) is True


@pytest.mark.parametrize(("depth", "expected"), [(60, True), (61, None), (62, None)])
def test_expression_nested_more_than_sixty_deep_is_not_known(depth: int, expected: bool | None) -> None:
    assert holds("!" * depth + "true") is expected


@pytest.mark.parametrize("text", ["true" + " && true" * 1_000, "!" * 10_000 + "true", "[" + "1," * 5_000 + "1] == []"])
def test_expression_of_too_many_tokens_is_not_known_and_costs_no_more_than_one_of_the_most(text: str) -> None:
    """A parse cannot be interrupted."""
    holds("true")  # loads the parser
    longest = calls_of(lambda: Expression("[" + "1," * (MOST_TOKENS // 2 - 2) + "1]"))
    assert calls_of(lambda: Expression(text)) < longest
    assert holds(text) is None
