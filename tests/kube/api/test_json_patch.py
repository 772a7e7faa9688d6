"""Patches are applied like any RFC 6902 implementation applies them."""

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from tests.support.objects.frozen import frozen
from webhook.kube.api.json_patch import patched

DOCUMENT = {"a": {"b": [1, {"c": 2}]}, "x/y": {"~": 0}}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([], id="none"),
        pytest.param([{"op": "add", "path": "/new", "value": {"k": []}}], id="a new key"),
        pytest.param([{"op": "replace", "path": "/a/b/1/c", "value": 3}], id="inside a list"),
        pytest.param([{"op": "add", "path": "/a/b/-", "value": 3}], id="behind the last item"),
        pytest.param([{"op": "add", "path": "/a/b/0", "value": 0}], id="before an item"),
        pytest.param([{"op": "replace", "path": "/a/b/0", "value": 0}], id="in place of an item"),
        pytest.param([{"op": "remove", "path": "/a/b/1/c"}], id="away"),
        pytest.param([{"op": "add", "path": "/x~1y/~0", "value": 1}], id="escaped steps"),
        pytest.param([{"op": "add", "path": "/x~1y/~01", "value": 1}], id="a step that is an escape once it is read"),
        pytest.param(
            [{"op": "add", "path": "/l", "value": [1]}, {"op": "add", "path": "/l/-", "value": 2}], id="what was added"
        ),
        pytest.param(
            [
                {"op": "add", "path": "/a/b/-", "value": 3},
                {"op": "add", "path": "/a/b/0", "value": 0},
                {"op": "replace", "path": "/a/b", "value": [4]},
                {"op": "add", "path": "/a/b/-", "value": 5},
            ],
            id="into a list that is replaced",
        ),
    ],
)
def test_operations_are_applied(operations: list[dict[str, Any]]) -> None:
    before = deepcopy(operations)
    assert patched(frozen(DOCUMENT), operations) == jsonpatch.apply_patch(DOCUMENT, deepcopy(operations))
    assert operations == before
