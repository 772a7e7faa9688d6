"""The labels that the rule GpuProduct requires of a node, vendor by vendor."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import make_pod
from webhook.mutation.edits.node_edits import RequireNode
from webhook.mutation.rules import gpu_product
from webhook.mutation.workload.workload import read_workload
from webhook.policy.policy import Policy


def required_labels(policy: Policy, resource: str, **annotations: str) -> dict[str, tuple[str, ...]]:
    """The bounds by label of a training pod that requests `resource` and has these annotations of ours."""
    pod = make_pod().annotate(TYPE, "training").requests(**{resource: 1}).limits(**{resource: 1})
    for name, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{name.replace('_', '-')}", value)
    workload = read_workload(pod.obj(), "default", {}, policy).workload
    assert workload is not None
    edits: Any = gpu_product(workload, policy)
    return {edit.requirement.key: edit.requirement.values for edit in edits if isinstance(edit, RequireNode)}


@pytest.mark.parametrize(
    ("resource", "label"),
    [
        pytest.param("nvidia.com/gpu", "nvidia.com/cuda.driver-version.major", id="the vendor's own label"),
        pytest.param("amd.com/gpu", "amd.com/gpu.driver-version", id="a vendor without one"),
        pytest.param("huawei.com/npu", "huawei.com/npu.driver-version", id="another vendor without one"),
    ],
)
def test_the_driver_label_is_the_vendors_or_made_of_the_card(resource: str, label: str) -> None:
    assert required_labels(policy_with(), resource, gpu_driver="550") == {label: ("549",)}


def test_memory_and_count_labels_are_made_of_the_card() -> None:
    labels = required_labels(policy_with(), "amd.com/gpu", gpu_memory="40Gi", gpu_count="4")
    least_mib = 40 * 1024 * 95 // 100
    assert labels == {"amd.com/gpu.memory": (str(least_mib - 1),), "amd.com/gpu.count": ("3",)}
