"""Label selectors in their read form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.kube.label_selector import (
    LabelRequirement,
    LabelSelector,
    exact_selector,
    read_label_selector,
    selector_matches,
    with_label_keys,
)
from webhook.kube.reader import Reader
from webhook.kube.selectors import label_selector_matches

_values = st.sampled_from(("a", "b", ""))
_labels = st.dictionaries(st.sampled_from(("k", "l")), _values)
_expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("k", "l", "absent")),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like")),
        "values": st.lists(_values, max_size=2),
    }
)


_selectors = st.fixed_dictionaries(
    {}, optional={"matchLabels": _labels, "matchExpressions": st.lists(_expressions, max_size=2)}
)


@given(selector=st.none() | _selectors, labels=_labels)
def test_parsed_selector_matches_like_the_raw_selector(selector: Any, labels: dict[str, str]) -> None:
    read = read_label_selector(Reader(), selector, "selector")
    assert selector_matches(read, labels) is label_selector_matches(selector, labels)


def test_malformed_fields_are_reported() -> None:
    reader = Reader()
    read_label_selector(reader, {"matchLabels": {"a": 1}, "matchExpressions": [{"key": 2}]}, "selector")
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
