"""Amounts of cards that no label of the nodes can tell."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import make_pod
from webhook.mutation.workload.workload import read_workload
from webhook.policy.policy import Policy


def accelerator_policy(**labels: Any) -> Policy:
    return policy_with(
        accelerators=[
            {"name": "nvidia", "resources": ["nvidia.com/gpu"], "card": "nvidia.com/gpu", "labels": labels},
        ]
    )


@pytest.mark.parametrize(
    ("fact", "annotation", "detail"),
    [
        pytest.param("memory", "gpu-memory: 80Gi", "no label for it", id="memory"),
        pytest.param("count", "gpu-count: 8", "no label for it", id="count"),
        pytest.param("driver", "gpu-driver: 550", "no label for it", id="driver"),
    ],
)
def test_an_amount_that_no_label_tells_is_invalid(fact: str, annotation: str, detail: str) -> None:
    key, _, value = annotation.partition(": ")
    pod = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/{key}", value).gpu(1)
    reading = read_workload(pod.obj(), "default", {}, accelerator_policy(**{fact: []}))
    assert [each.path for each in reading.errors] == [f"metadata.annotations[{DOMAIN}/{key}]"]
    assert detail in reading.errors[0].detail


def test_more_memory_than_any_card_has_is_invalid() -> None:
    pod = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/gpu-memory", "512Gi")
    pod = pod.requests(**{"amd.com/gpu": 1}).limits(**{"amd.com/gpu": 1})
    (error,) = read_workload(pod.obj(), "default", {}, policy_with()).errors
    assert error.detail == "a card of amd has at most 432G (accelerators.labels.memoryValues)"
