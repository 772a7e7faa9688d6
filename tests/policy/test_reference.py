"""The reference of the policy's fields: defaults that are short stand in the table."""

import pytest
from pydantic.fields import FieldInfo

from tests.docs.generators.reference import _default
from webhook.policy.spec.fields import StrictModel


class Limits(StrictModel):
    """An object of a policy."""

    most_pods: int = 3


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(FieldInfo(), "required", id="no default"),
        pytest.param(FieldInfo(default=None), "absent", id="nothing"),
        pytest.param(FieldInfo(default=True), "`true`", id="a switch"),
        pytest.param(FieldInfo(default=Limits()), '`{"mostPods":3}`', id="an object, with the keys of the document"),
        pytest.param(FieldInfo(default="x" * 38), f'`"{"x" * 38}"`', id="forty characters"),
        pytest.param(FieldInfo(default="x" * 39), "[above](#the-placementpolicy)", id="more than forty"),
    ],
)
def test_default_stands_in_the_table_if_it_is_short(field: FieldInfo, expected: str) -> None:
    assert _default(field) == expected
