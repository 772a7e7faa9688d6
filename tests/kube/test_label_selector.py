"""Label selectors in their read form."""

from typing import Any

import pytest

from webhook.kube.reader import Reader
from webhook.kube.selectors import (
    LabelRequirement,
    LabelSelector,
    exact_selector,
    read_label_selector,
    selector_matches,
    with_label_keys,
)

_INFERENCE = {"key": "use", "operator": "In", "values": ["inference"]}
_LABELS = {"use": "training", "size": "5"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="none matches nothing"),
        pytest.param({}, True, id="an empty one matches everything"),
        pytest.param({"matchLabels": {"use": "training"}}, True, id="labels"),
        pytest.param({"matchLabels": {"use": "hybrid"}}, False, id="other labels"),
        pytest.param({"matchLabels": {"use": "training"}, "matchExpressions": [_INFERENCE]}, False, id="ANDed"),
        pytest.param(
            {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}, False, id="no Gt here"
        ),
    ],
)
def test_label_selector(selector: Any, expected: bool) -> None:
    read = read_label_selector(Reader({"selector": selector}), "selector")
    assert selector_matches(read, _LABELS) is expected


def test_malformed_fields_are_reported() -> None:
    reader = Reader({"selector": {"matchLabels": {"a": 1}, "matchExpressions": [{"key": 2}]}})
    read_label_selector(reader, "selector")
    assert [error.path for error in reader.errors] == ["selector.matchLabels[a]", "selector.matchExpressions[0].key"]


_APP = exact_selector({"app": "web"})
_VERSION = LabelRequirement("version", "In", ("2",))


@pytest.mark.parametrize(
    ("selector", "keys", "expected"),
    [
        pytest.param(_APP, ["version"], (*_APP, _VERSION), id="added"),
        pytest.param(_APP, ["absent"], _APP, id="not a label of the pod"),
        pytest.param((*_APP, _VERSION), ["version"], (*_APP, _VERSION), id="added already"),
        pytest.param((), ["version"], (_VERSION,), id="to one that selects everything"),
        pytest.param(None, ["version"], None, id="not to one that is not there"),
    ],
)
def test_label_keys_become_requirements(
    selector: LabelSelector | None, keys: list[str], expected: LabelSelector | None
) -> None:
    assert with_label_keys(selector, "In", keys, {"app": "web", "version": "2"}) == expected
