"""The JSON schema of `policy schema` accepts the same policies as the loader."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from webhook.documents.documents import parse
from webhook.documents.field import InvalidInput
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.spec.document import PolicyDocument

SCHEMA = PolicyDocument.model_json_schema(by_alias=True)
ROOT = Path(__file__).parents[3]
HEAD = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def faults(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where `value` breaks `schema`: as much of JSON schema as ours uses, an unknown keyword being an error."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    for keyword, wanted in schema.items():
        if keyword in BREAKS:
            if BREAKS[keyword](value, wanted):
                yield f"{path}: {keyword} {wanted}"
        elif keyword == "anyOf":
            if all(list(faults(value, each, path)) for each in wanted):
                yield f"{path}: none of {wanted}"
        else:
            assert keyword in INNER | ANNOTATIONS, keyword
    for key, inner, its_schema in parts(value, schema):
        if its_schema is False:
            yield f"{path}.{key}: unknown"
        else:
            yield from faults(inner, its_schema, f"{path}.{key}")


def parts(value: Any, schema: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The items or fields of `value`, each with its schema; False for a field that may not be there."""
    if isinstance(value, list):
        yield from ((str(index), item, schema.get("items", {})) for index, item in enumerate(value))
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from ((key, inner, properties.get(key, others)) for key, inner in value.items())


ANNOTATIONS = {"title", "description", "default", "$defs", "propertyNames"}
INNER = {"items", "properties", "additionalProperties"}
BREAKS: dict[str, Callable[[Any, Any], bool]] = {
    "type": lambda value, wanted: type(value) not in TYPES[wanted],
    "const": lambda value, wanted: value != wanted,
    "enum": lambda value, wanted: value not in wanted,
    "minimum": lambda value, wanted: isinstance(value, int) and value < wanted,
    "maximum": lambda value, wanted: isinstance(value, int) and value > wanted,
    "required": lambda value, wanted: isinstance(value, dict) and not set(wanted) <= set(value),
}


def models() -> list[dict[str, Any]]:
    return [SCHEMA, *SCHEMA["$defs"].values()]


def test_every_reference_leads_to_a_definition() -> None:
    references = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                references.add(node["$ref"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(SCHEMA)
    assert references == {f"#/$defs/{name}" for name in SCHEMA["$defs"]}


def test_every_model_is_closed_and_every_field_is_described_and_camel_cased() -> None:
    for model in models():
        assert model["additionalProperties"] is False, model["title"]
        for name, field in model["properties"].items():
            described = field if "description" in field else SCHEMA["$defs"][field["$ref"].rpartition("/")[2]]
            assert described["description"], f"{model['title']}.{name}"
            assert name == to_camel(name), f"{model['title']}.{name}"


def test_version_and_kind_are_required() -> None:
    assert SCHEMA["required"] == ["apiVersion", "kind"]
    assert SCHEMA["properties"]["apiVersion"]["const"] == HEAD["apiVersion"]
    assert SCHEMA["properties"]["kind"]["const"] == HEAD["kind"]


def policies() -> list[Any]:
    (shipped,) = parse((ROOT / "deploy" / "base" / "policy.yaml").read_bytes(), "policy.yaml")
    return [
        pytest.param(HEAD, id="the least"),
        pytest.param(built_in_policy().document.model_dump(mode="json", by_alias=True), id="the default, written out"),
        pytest.param(shipped.content, id="the shipped one"),
        pytest.param(
            HEAD
            | {
                "spec": {
                    "nodeTemplates": [
                        {
                            "name": "gpu-h20",
                            "labels": {"pool": ""},
                            "taints": [{"key": "pool", "effect": "NoSchedule"}],
                            "capacity": {"cpu": 63.5, "memory": "1Ti", "nvidia.com/gpu": 8},
                        }
                    ]
                }
            },
            id="one with node templates",
        ),
        pytest.param(
            HEAD
            | {
                "spec": {
                    "withoutAccelerator": "inject",
                    "productVariants": ["-SHARED"],
                    "workloadTypes": {
                        "training": {
                            "nodeUsage": {"allow": ["training"]},
                            "extraTolerations": [
                                {"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
                            ],
                        }
                    },
                }
            },
            id="one for clusters of a provider",
        ),
    ]


@pytest.mark.parametrize("policy", policies())
def test_schema_accepts_a_valid_policy(policy: dict[str, Any]) -> None:
    assert list(faults(policy, SCHEMA)) == []
    parse_policy(json.dumps(policy), "p.yaml")


@pytest.mark.parametrize("weight", [1, 100])
def test_the_schema_takes_the_least_and_the_greatest_weight(weight: int) -> None:
    policy = HEAD | {"spec": {"binPacking": {"weight": weight}}}
    assert list(faults(policy, SCHEMA)) == []
    parse_policy(json.dumps(policy), "p.yaml")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"kind": "ConfigMap"}, id="another kind"),
        pytest.param({"status": {}}, id="an unknown key"),
        pytest.param({"spec": {"key_domain": "example.com"}}, id="a key in snake case"),
        pytest.param({"spec": {"productAffinity": "true"}}, id="text for a boolean"),
        pytest.param({"spec": {"binPacking": {"weight": 101}}}, id="a weight too great"),
        pytest.param({"spec": {"binPacking": {"weight": 0}}}, id="a weight too small"),
        pytest.param({"spec": {"placementCheck": {"maxViewAgeSeconds": 0}}}, id="an age too small"),
        pytest.param({"spec": {"placementCheck": {"reservationSeconds": 0}}}, id="a reservation too short"),
        pytest.param({"spec": {"placementCheck": {"workBudgetMilliseconds": 0}}}, id="a budget too small"),
        pytest.param({"spec": {"placementCheck": {"workBudgetMilliseconds": 10_001}}}, id="a budget too large"),
        pytest.param({"spec": {"placementCheck": {"mode": "strict"}}}, id="a mode that is none"),
        pytest.param({"spec": {"workloadTypes": {"t": {}}}}, id="a type without pools"),
        pytest.param({"spec": {"accelerators": [{"name": "x"}]}}, id="an accelerator without card"),
        pytest.param({"spec": {"nodeTemplates": [{"name": "x"}]}}, id="a node template without capacity"),
        pytest.param({"spec": {"gpuMemoryTolerancePercent": -1}}, id="a tolerance too small"),
        pytest.param({"spec": {"gpuMemoryTolerancePercent": 51}}, id="a tolerance too large"),
        pytest.param({"spec": {"withoutAccelerator": "deny"}}, id="a handling that is none"),
        pytest.param({"spec": {"withoutAccelerator": {"pods": "warn"}}}, id="a handling of nothing"),
        pytest.param({"spec": {"binPacking": {"namespaces": "own"}}}, id="namespaces that are none"),
    ],
)
def test_schema_rejects_what_the_loader_rejects(change: dict[str, Any]) -> None:
    document = HEAD | change

    assert list(faults(document, SCHEMA)) != []
    with pytest.raises(InvalidInput, match=r"^p\.yaml: "):
        parse_policy(json.dumps(document), "p.yaml")
