"""Every field of the policy is either compared between webhook and exported policy, or listed with a reason.

The differential test (tests/differential/test_exported_policy.py) compares what both make of random policies. A field
that these policies never have is not compared, and the exported policy could forget it.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest
from pydantic import BaseModel

from tests.differential.random_objects.exported_cases import random_policies
from webhook.policy.spec.document import PolicySpec

_NO_INJECTION = "changes no injection"
_OF_WEBHOOK = "only the webhook does it, which docs/exported-policy.md states"
_SELECTION = "selects the pods of the exported object; tests/mutation/exported/test_matching.py"
NOT_DRAWN: Mapping[str, str] = {
    "key_domain": "the prefix of all keys; tests/mutation/exported/test_mutations.py",
    "former_key_domains": "only for warnings",
    "gpu_memory_tolerance_percent": "pods with gpu-memory are left to the webhook",
    "queueing": _NO_INJECTION,
    "placement_check": _OF_WEBHOOK,
    "pack_gpus": _NO_INJECTION,
    "node_templates": _NO_INJECTION,
    "reclaim": _NO_INJECTION,
    "temporary_taints": _NO_INJECTION,
    "workload_kinds": _OF_WEBHOOK,
    "workload_objects": _OF_WEBHOOK,
    "namespace_selector": _SELECTION,
    "priority": _SELECTION,
    "unknown_namespace": _OF_WEBHOOK,
    "missing_policy": _OF_WEBHOOK,
    "canary_percent": "a policy with a canary is not exported",
    "tests": _NO_INJECTION,
    "allowed_schedulers": "drawn with every scheduler in it; an unknown one is an invalid annotation",
    "accelerators.labels.memory": "pods with gpu-memory are left to the webhook",
    "accelerators.labels.memory_unit": "pods with gpu-memory are left to the webhook",
    "accelerators.labels.memory_values": "pods with gpu-memory are left to the webhook",
    "accelerators.labels.count": "pods with gpu-count are left to the webhook",
    "accelerators.labels.driver": "pods with gpu-driver are left to the webhook",
    "accelerators.driver_label": "pods with gpu-driver are left to the webhook",
    "workload_types.spread.max_skew": "no spreading is exported",
    "workload_types.spread.weight": "no spreading is exported",
    "schedulers.topology_name": "pods with within are left to the webhook",
    "schedulers.tiers": "pods with within are left to the webhook",
    "without_accelerator": "drawn as one word, which sets both fields",
}
_POLICIES = 400


def fields_of(model: type[BaseModel], place: str = "") -> Iterator[str]:
    """Yield the paths of all fields, without the keys and indices of maps and lists."""
    for name, field in model.model_fields.items():
        path = f"{place}{name}"
        yield path
        for inner in models_in(field.annotation):
            yield from fields_of(inner, f"{path}.")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from models_in(each)


def set_fields(value: Any, place: str = "") -> Iterator[str]:
    """Yield the paths of the fields that a document sets."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            yield f"{place}{name}"
            yield from set_fields(getattr(value, name), f"{place}{name}.")
    elif isinstance(value, dict | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from set_fields(each, place)


@pytest.fixture(scope="module")
def drawn() -> set[str]:
    return {path for policy in islice(random_policies(1), _POLICIES) for path in set_fields(policy.spec)}


FIELDS = tuple(dict.fromkeys(fields_of(PolicySpec)))


def reason_of(path: str) -> str | None:
    parts = path.split(".")
    return next((NOT_DRAWN[key] for end in range(len(parts)) if (key := ".".join(parts[: end + 1])) in NOT_DRAWN), None)


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_is_compared_or_listed_with_a_reason(path: str, drawn: set[str]) -> None:
    remedy = (
        f"{path}: draw it in tests/differential/random_objects/exported_cases.py, so that the exported policy is "
        "compared with the webhook, or list it here with the reason why it need not be"
    )
    assert (path in drawn) or reason_of(path), remedy


@pytest.mark.parametrize("path", NOT_DRAWN)
def test_a_listed_field_exists_and_is_not_drawn(path: str, drawn: set[str]) -> None:
    assert path in FIELDS, f"{path} is no field of the policy"
    assert path not in drawn or path == "without_accelerator", f"{path} is compared: remove it from the list"
