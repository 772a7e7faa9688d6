"""Node templates in a policy: valid ones, and the errors of invalid ones."""

from typing import Any

import orjson
import pytest

from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy

_TEMPLATE = {"name": "gpu-h20", "capacity": {"cpu": "8"}}
_QUANTITY = 'must be a quantity: a number with an optional suffix, as in "500m", "2", "1.5Gi" or "12e6"'
_LABEL_VALUE = "must be a label value: at most 63 letters, digits, '-', '_', '.', its ends letters or digits"
_LABEL_KEY = "must be a label key: NAME or DOMAIN/NAME, NAME at most 63 letters, digits, '-', '_', '.'"
_EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


def policy(*templates: dict[str, Any]) -> Policy:
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    return parse_policy(orjson.dumps(head | {"spec": {"nodeTemplates": list(templates)}}), "p.yaml")


def errors(*templates: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        policy(*templates)
    return [str(error) for error in refused.value.errors]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"labels": {"a b": "c"}}, f'labels.a b: Invalid value: "a b"; {_LABEL_KEY}'),
        ({"labels": {"a": "-"}}, f'labels.a: Invalid value: "-"; {_LABEL_VALUE}; it may be empty'),
        ({"taints": [{"key": "a", "effect": "x"}]}, f'taints[0].effect: Unsupported value: "x"; {_EFFECTS}'),
        ({"taints": [{"key": "a"}]}, "taints[0].effect: Required value: must be set"),
        ({"capacity": {}}, "capacity: Invalid value: {}; must hold at least one resource"),
        ({"capacity": {"memory": "1TB"}}, f'capacity.memory: Invalid value: "1TB"; {_QUANTITY}'),
        ({"capacity": {"memory": None}}, f"capacity.memory: Invalid value: null; {_QUANTITY}"),
        ({"capacity": {"cpu": -1}}, "capacity.cpu: Invalid value: -1; must not be negative"),
        ({"capacity": {"cpu": "-1m"}}, 'capacity.cpu: Invalid value: "-1m"; must not be negative'),
    ],
)
def test_an_error_names_the_field_its_value_and_what_would_be_valid(fields: dict[str, Any], wanted: str) -> None:
    assert errors(_TEMPLATE | fields) == [f"p.yaml: spec.nodeTemplates[0].{wanted}"]


def test_templates_need_names_of_their_own() -> None:
    (error,) = errors(_TEMPLATE, _TEMPLATE | {"capacity": {"cpu": "9"}})

    assert error.startswith("p.yaml: spec.nodeTemplates: Invalid value: [")
    assert error.endswith("; each node template must have a name of its own")


def test_a_number_is_a_quantity_and_means_the_same_as_its_text() -> None:
    number, text = (
        {"name": "x", "capacity": {"cpu": cpu, "nvidia.com/gpu": gpu}} for cpu, gpu in ((0.5, 8), ("0.5", "8"))
    )

    assert policy(number).revision == policy(text).revision
