"""Accelerators: the resources of the cards of each vendor, and the labels of their nodes."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal, Self, get_args

from pydantic import model_validator

from webhook.policy.spec.field_types import (
    Card,
    LabelKey,
    LabelValue,
    ResourcePattern,
    SomeValues,
    StrictModel,
    Values,
    checked,
    wrong,
)
from webhook.policy.spec.workloads import ExtraToleration

Fact = Literal["product", "memory", "count", "driver"]
"""A fact of the cards of a node that a label can tell."""

FACTS: tuple[Fact, ...] = get_args(Fact)

MEBIBYTE = 1 << 20
_BYTES = {"B": 1, "MB": 10**6, "MiB": MEBIBYTE, "GB": 10**9, "GiB": 1 << 30}
# Each label but the first copies the terms of a pod's node affinity.
_MOST_LABELS = 4
_NUMBER = re.compile(r"[1-9][0-9]{0,8}(?![0-9])")

_Labels = Annotated[
    Values[LabelKey],
    checked(lambda labels: len(labels) <= _MOST_LABELS, f"must hold at most {_MOST_LABELS} labels"),
]


class CardLabels(StrictModel):
    """The labels that tell the cards of a node.

    Of several labels for one fact, a node needs only one, such as a new and an older name. At most 4. An empty list
    means that nodes have no such label; the annotation is then invalid for pods that request the accelerator.
    """

    product: Annotated[_Labels, checked(bool, "must hold at least one label")] | None = None
    """Labels with the product of the cards, for `gpu-product`. If absent: `CARD.product`."""

    memory: _Labels | None = None
    """Labels with the memory of one card, for `gpu-memory`. If absent: `CARD.memory`."""

    memory_unit: Literal["B", "MB", "MiB", "GB", "GiB"] = "MiB"
    """The unit of the numbers in the `memory` labels."""

    memory_values: Values[
        Annotated[LabelValue, checked(_NUMBER.match, "must begin with a number of memoryUnit, like 192G")]
    ] = ()
    """All values that the `memory` labels can have, if they are no plain numbers: `["64G", "192G"]`. Node affinity
    compares only integers, so a pod requires one of the values that are large enough. If empty: plain numbers."""

    count: _Labels | None = None
    """Labels with the number of cards of the node, for `gpu-count`. If absent: `CARD.count`."""

    driver: _Labels | None = None
    """Labels with the major version of the driver, an integer, for `gpu-driver`. If absent: `CARD.driver-version`."""


class Accelerator(StrictModel):
    """The cards of one vendor: the resources that pods request and the labels and taints of its nodes."""

    name: LabelValue
    """The name in messages."""

    resources: SomeValues[ResourcePattern]
    """Extended resources with which a pod requests such a card; a trailing `*` matches any suffix."""

    card: Card
    """`VENDOR-DOMAIN/CARD`: the taint of nodes with a product is `CARD.product`, and so are labels that `labels` does
    not name."""

    labels: CardLabels = CardLabels()
    """The labels of nodes, as the vendor's labeller or the cloud writes them."""

    driver_label: LabelKey | None = None
    """The same as `labels.driver` with one label."""

    extra_tolerations: Values[ExtraToleration] = ()
    """Tolerations of pods that request this accelerator and have a workload type, for taints such as a cloud
    provider's `nvidia.com/gpu=present:NoSchedule`: see docs/annotations.md."""

    @model_validator(mode="after")
    def _names_the_driver_once(self) -> Self:
        if self.driver_label is not None and self.labels.driver is not None:
            raise wrong("must have driverLabel or labels.driver, not both")
        return self

    @cached_property
    def product_taint(self) -> str:
        """The key of the taint of nodes with a product."""
        return f"{self.card}.product"

    @cached_property
    def product_labels(self) -> tuple[str, ...]:
        """The labels with the product of a node. One is enough, as for all facts."""
        return self._stated(self.labels.product, "product")

    @cached_property
    def memory_labels(self) -> tuple[str, ...]:
        """The labels with the memory of one card."""
        return self._stated(self.labels.memory, "memory")

    @cached_property
    def count_labels(self) -> tuple[str, ...]:
        """The labels with the number of cards."""
        return self._stated(self.labels.count, "count")

    @cached_property
    def driver_labels(self) -> tuple[str, ...]:
        """The labels with the major version of the driver."""
        own = (self.driver_label,) if self.driver_label is not None else self.labels.driver
        return self._stated(own, "driver-version")

    def labels_of(self, fact: Fact) -> tuple[str, ...]:
        """Return the labels with `fact`."""
        labels: tuple[str, ...] = getattr(self, f"{fact}_labels")
        return labels

    def _stated(self, labels: tuple[str, ...] | None, suffix: str) -> tuple[str, ...]:
        return (f"{self.card}.{suffix}",) if labels is None else labels

    def product_of(self, labels: Mapping[str, str]) -> str | None:
        """Return the product in the `labels` of a node, or None if there is none."""
        for key in self.product_labels:
            if product := labels.get(key):
                return product
        return None

    def memory_mib(self, value: str) -> int | None:
        """Return the MiB in the value of a `memory` label, rounded down, or None if it has no number."""
        size = self._memory_bytes(value)
        return None if size is None else size // MEBIBYTE

    def least_memory(self, least_bytes: int) -> int:
        """Return the number of `memoryUnit` that is at least `least_bytes`."""
        return -(-least_bytes // _BYTES[self.labels.memory_unit])

    def memory_values(self, least_bytes: int) -> tuple[str, ...]:
        """Return the listed values of the `memory` labels that are at least `least_bytes`."""
        return tuple(each for each in self.labels.memory_values if (self._memory_bytes(each) or 0) >= least_bytes)

    def _memory_bytes(self, value: str) -> int | None:
        number = _NUMBER.match(value)
        if number is None or (not self.labels.memory_values and number[0] != value):
            return None
        return int(number[0]) * _BYTES[self.labels.memory_unit]


# The sizes of cards, whole or partitioned, to which AMD's labeller rounds.
_AMD_SIZES = (4, 8, 12, 16, 20, 24, 32, 36, 48, 64, 72, 96, 128, 144, 192, 256, 288, 432)

# Each vendor's labels are those of its labeller. If there is one, the label that people write by hand comes last.
# Source: github.com/NVIDIA/k8s-device-plugin/internal/lm/nvml.go, newVersionLabeler (both names of the driver);
# github.com/ROCm/k8s-device-plugin/cmd/k8s-node-labeller/main.go, createLabels (a counter of the family, in integers;
# the version of the driver is none), "vram" (rounded GiB with a G); hiascend.com/document, MindCluster, "Native
# Kubernetes Objects", node labels; github.com/intel/intel-device-plugins-for-kubernetes/deployments/nfd/overlays/
# node-feature-rules/platform-labeling-rules.yaml (memory.max is the sum of the node);
# github.com/HabanaAI/gaudi-feature-discovery/collector/collector.go; cloud.google.com/kubernetes-engine/docs/concepts/
# tpus, "TPU node labels"
BUILT_IN_ACCELERATORS = (
    Accelerator(
        name="nvidia",
        resources=("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        card="nvidia.com/gpu",
        labels=CardLabels(driver=("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major")),
    ),
    Accelerator(
        name="amd",
        resources=("amd.com/gpu",),
        card="amd.com/gpu",
        labels=CardLabels(
            product=("amd.com/gpu.product-name", "amd.com/gpu.product"),
            memory=("amd.com/gpu.vram",),
            memory_unit="GiB",
            memory_values=tuple(f"{size}G" for size in _AMD_SIZES),
            count=("beta.amd.com/gpu.family.AI", "amd.com/gpu.count"),
            driver=(),
        ),
    ),
    Accelerator(
        name="huawei",
        resources=("huawei.com/npu", "huawei.com/Ascend*"),
        card="huawei.com/npu",
        labels=CardLabels(product=("node.kubernetes.io/npu.chip.name", "accelerator-type", "huawei.com/npu.product")),
    ),
    Accelerator(name="cambricon", resources=("cambricon.com/mlu*",), card="cambricon.com/mlu"),
    Accelerator(name="hygon", resources=("hygon.com/dcu*",), card="hygon.com/dcu"),
    Accelerator(
        name="intel",
        resources=("gpu.intel.com/i915", "gpu.intel.com/xe"),
        card="gpu.intel.com/gpu",
        labels=CardLabels(
            product=("gpu.intel.com/product",), memory=(), count=("gpu.intel.com/device.count",), driver=()
        ),
    ),
    Accelerator(
        name="gaudi",
        resources=("habana.ai/gaudi",),
        card="habana.ai/gaudi",
        labels=CardLabels(product=("habana.ai/device.name",), memory=(), count=("habana.ai/device.count",), driver=()),
    ),
    Accelerator(
        name="tpu",
        resources=("google.com/tpu",),
        card="google.com/tpu",
        labels=CardLabels(
            product=("cloud.google.com/gke-tpu-accelerator",),
            memory=(),
            count=("cloud.google.com/gke-accelerator-count",),
            driver=(),
        ),
    ),
)

# Source: cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Specify GPU type";
# github.com/aws/karpenter-provider-aws/pkg/apis/v1/labels.go;
# docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html
_OF_CLOUDS: Mapping[Fact, tuple[str, ...]] = {
    "product": (
        "cloud.google.com/gke-accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
        "eks.amazonaws.com/instance-gpu-name",
    ),
    "memory": ("karpenter.k8s.aws/instance-gpu-memory", "eks.amazonaws.com/instance-gpu-memory"),
    "count": (
        "cloud.google.com/gke-accelerator-count",
        "karpenter.k8s.aws/instance-gpu-count",
        "eks.amazonaws.com/instance-gpu-count",
    ),
}


def similar_labels(accelerator: Accelerator, fact: Fact) -> Iterator[str]:
    """Yield labels, other than those of `accelerator`, that can tell `fact`: those of its labeller, and of clouds."""
    labellers = (each for each in BUILT_IN_ACCELERATORS if each.card == accelerator.card)
    known = [label for each in labellers for label in each.labels_of(fact)]
    yield from (each for each in (*known, *_OF_CLOUDS.get(fact, ())) if each not in accelerator.labels_of(fact))
