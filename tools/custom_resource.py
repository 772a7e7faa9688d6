"""Generate the CustomResourceDefinition of PlacementPolicy.

The schema follows from the models of the policy; CEL states the rules that a schema cannot. The API server checks
both when an object is written. The server validates the rest, and reports it in the condition Accepted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import DEPLOY
from tools.custom_resource_rules import RULES
from webhook.documents.documents import JsonObject
from webhook.policy.spec.document import API_VERSION, KIND, PolicySpec

PLURAL = "placementpolicies"
GROUP, _, VERSION = API_VERSION.partition("/")
NAME = f"{PLURAL}.{GROUP}"

# Bounds without which the API server estimates a CEL rule to be too expensive. A label value has 63 characters.
_MOST_TEXT = 317
_MOST_ITEMS = 64
_MOST_KEYS = 64
# Lists with a larger bound of their own.
_ITEMS = {"exemptions": 100, "tests": 100, "productVariants": 10}
_SIMPLE = ("type", "enum", "minimum", "maximum", "required")
_ANY_OBJECT: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INT_OR_TEXT: JsonObject = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def custom_resource() -> JsonObject:
    """Return the CustomResourceDefinition."""
    document = PolicySpec.model_json_schema(by_alias=True)
    spec = _Structural(document.get("$defs", {})).schema(document, "PolicySpec")
    # A column prints what is stored.
    spec["properties"]["mode"]["default"] = PolicySpec.model_fields["mode"].default
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
        "status": _STATUS,
    }
    schema = {
        "type": "object",
        "description": "A placement policy. The policy named `default` is for all namespaces without one of their own.",
        "properties": properties,
        "x-kubernetes-validations": [_rule(each) for each in RULES["PlacementPolicy"]],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _COLUMNS,
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": ["pp", "plp"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def files() -> Mapping[Path, str]:
    """Return the CustomResourceDefinition as YAML."""
    head = "# Generated from the policy's models by `make docs`; do not edit.\n"
    text = yaml.safe_dump(custom_resource(), sort_keys=False, allow_unicode=True, width=120)
    return {DEPLOY / "crd" / "placementpolicies.yaml": head + text}


class _Structural:
    """Turns the JSON schema of pydantic, with its `definitions`, into a structural schema.

    Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go
    """

    def __init__(self, definitions: Mapping[str, JsonObject]) -> None:
        self._definitions = definitions

    def schema(self, given: JsonObject, name: str) -> JsonObject:
        """Return `given`, which is the model or field `name`."""
        described = {"description": " ".join(given["description"].split())} if "description" in given else {}
        return described | self._content(given, name)

    def _content(self, given: JsonObject, name: str) -> JsonObject:
        if "$ref" in given:
            model = given["$ref"].rpartition("/")[2]
            return self._content(self._definitions[model], model)
        if "anyOf" in given:
            return self._union(given["anyOf"], name)
        made = {key: given[key] for key in _SIMPLE if key in given}
        if "const" in given:
            made["enum"] = [given["const"]]
        if given["type"] == "string" and "enum" not in made:
            made["maxLength"] = _MOST_TEXT
        if given["type"] == "array":
            made |= {"maxItems": _ITEMS.get(name, _MOST_ITEMS), "items": self.schema(given["items"], f"{name}[]")}
        return made | self._object(given, name) if given["type"] == "object" else made

    def _object(self, given: JsonObject, name: str) -> JsonObject:
        if given.get("additionalProperties") is True:
            return _ANY_OBJECT
        rules = {"x-kubernetes-validations": [_rule(each) for each in RULES[name]]} if name in RULES else {}
        if "properties" in given:
            return {"properties": {key: self.schema(each, key) for key, each in given["properties"].items()}} | rules
        values = self.schema(given["additionalProperties"], f"{name}.*")
        return {"maxProperties": _MOST_KEYS, "additionalProperties": values} | rules

    def _union(self, parts: list[JsonObject], name: str) -> JsonObject:
        """Return a union: an optional value, an amount, or an object with a short form, which only files have."""
        kinds = [each for each in parts if each.get("type") != "null"]
        if len(kinds) == 1:
            return self._content(kinds[0], name) | {"nullable": True}
        types = {each.get("type") for each in kinds}
        if types <= {"string", "number", "integer"}:
            return _INT_OR_TEXT
        return self._content(next(each for each in kinds if "$ref" in each), name)


def _rule(given: tuple[str, str]) -> JsonObject:
    rule, message = given
    return {"rule": " ".join(rule.split()), "message": message}


_TEXT: JsonObject = {"type": "string"}
_CONDITION: JsonObject = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": _TEXT | {"maxLength": 316},
        "status": _TEXT | {"enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": _TEXT | {"format": "date-time"},
        "reason": _TEXT | {"maxLength": 1024},
        "message": _TEXT | {"maxLength": 32768},
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "description": "Written by the webhook.",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "revision": _TEXT | {"description": "The revision of the object that is in force."},
        "inForceSpec": _ANY_OBJECT
        | {
            "description": "The spec of the last good generation, with which servers start while the newest one is "
            "rejected. It is there only then."
        },
        "conditions": {
            "type": "array",
            "description": "Accepted: this generation is valid. InForce: it is used.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
    },
}
_ACCEPTED = '.status.conditions[?(@.type=="Accepted")]'
_COLUMNS: list[dict[str, Any]] = [
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
    {"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"},
    {"name": "Revision", "type": "string", "jsonPath": ".status.revision"},
    {"name": "Accepted", "type": "string", "jsonPath": f"{_ACCEPTED}.status"},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="InForce")].reason'},
    {"name": "Message", "type": "string", "jsonPath": f"{_ACCEPTED}.message", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
