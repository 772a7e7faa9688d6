"""Test cases of a policy are bounded and validated."""

from typing import Any

import pytest

from tests.policy.spec.cases_of_policy import policy_text
from tests.support.admission import PRODUCT, TYPE
from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy

TRAINING = {"annotations": {TYPE: "training", PRODUCT: "NVIDIA-H20"}, "requests": {"nvidia.com/gpu": 8}}
PATCHED = {"outcome": "Patched"}


@pytest.mark.parametrize(
    ("tests", "error"),
    [
        pytest.param([{"name": str(n), "expect": PATCHED} for n in range(101)], "at most 100 entries", id="too many"),
        pytest.param([{"name": "a", "expect": PATCHED}] * 2, "a name of its own", id="same name"),
        pytest.param(
            [{"name": "a", "pod": {"x": "y" * 65536}, "expect": PATCHED}], "at most 65536 bytes", id="too large"
        ),
        pytest.param([{"name": "a", **TRAINING, "pod": {}, "expect": PATCHED}], "not both", id="two pods"),
        pytest.param([{"name": "a", "expect": {}}], "expect.outcome: Required value", id="no outcome"),
        pytest.param([{"name": "a", "expect": {"outcome": "Shadowed"}}], "supported values", id="unknown outcome"),
    ],
)
def test_cases_are_bounded_and_validated(tests: list[dict[str, Any]], error: str) -> None:
    with pytest.raises(InvalidInput, match=error):
        parse_policy(policy_text(tests), "policy.yaml")
