"""Accelerators: the cards of one vendor, and the built-in vendors."""

from webhook.policy.extra_toleration import ExtraToleration
from webhook.policy.fields import Card, LabelKey, LabelValue, ResourcePattern, SomeValues, StrictModel, Values


class Accelerator(StrictModel):
    """The cards of one vendor: the resources that pods request and the labels of its nodes."""

    name: LabelValue
    """The name in messages."""

    resources: SomeValues[ResourcePattern]
    """Extended resources with which a pod requests such a card; a trailing `*` matches any suffix."""

    card: Card
    """`VENDOR-DOMAIN/CARD`: nodes have the labels `CARD.product`, `CARD.count` and `CARD.memory` (MiB of one card),
    and the taint `CARD.product`."""

    driver_label: LabelKey | None = None
    """The label with the major version of the driver, an integer. If absent: `CARD.driver-version`."""

    extra_tolerations: Values[ExtraToleration] = ()
    """Tolerations of pods that request this accelerator and have a workload type, for taints such as a cloud
    provider's `nvidia.com/gpu=present:NoSchedule`: see docs/annotations.md."""


BUILT_IN_ACCELERATORS = (
    Accelerator(
        name="nvidia",
        resources=("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        card="nvidia.com/gpu",
        driver_label="nvidia.com/cuda.driver-version.major",
    ),
    Accelerator(name="amd", resources=("amd.com/gpu",), card="amd.com/gpu"),
    Accelerator(name="huawei", resources=("huawei.com/npu", "huawei.com/Ascend*"), card="huawei.com/npu"),
    Accelerator(name="cambricon", resources=("cambricon.com/mlu*",), card="cambricon.com/mlu"),
    Accelerator(name="hygon", resources=("hygon.com/dcu*",), card="hygon.com/dcu"),
)
