"""Further resource names that request cards: those of schedulers and device plugins that share cards.

The amount of such a resource is a number of cards, or a share: the memory or the cores of one card. A container that
requests a share but no number gets one card. The names are the defaults of Volcano and HAMi for the vendors of the
built-in policy.

Source: volcano.sh/volcano/pkg/scheduler/api/devices/config/config.go, pkg/scheduler/api/devices/nvidia/vgpu/utils.go,
resourcereqs; github.com/Project-HAMi/HAMi/charts/hami/templates/scheduler/device-configmap.yaml, values.yaml
"""

import re
from collections.abc import Mapping

from webhook.kube.pod.amounts import NVIDIA_GPU

_NUMBERS: Mapping[str, str] = {
    "volcano.sh/gpu-number": NVIDIA_GPU,
    "volcano.sh/vgpu-number": NVIDIA_GPU,
    "cambricon.com/vmlu": "cambricon.com/mlu",
    "hygon.com/hcunum": "hygon.com/dcu",
}
_SHARES: Mapping[str, str] = {
    **dict.fromkeys(("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"), NVIDIA_GPU),
    **dict.fromkeys(("volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage"), NVIDIA_GPU),
    **dict.fromkeys(("volcano.sh/vgpu-cores", "volcano.sh/gpu-memory"), NVIDIA_GPU),
    **dict.fromkeys(("amd.com/gpumem", "amd.com/gpucores"), "amd.com/gpu"),
    **dict.fromkeys(("cambricon.com/mlu.smlu.vmemory", "cambricon.com/mlu.smlu.vcore"), "cambricon.com/mlu"),
    **dict.fromkeys(("hygon.com/dcumem", "hygon.com/dcucores"), "hygon.com/dcu"),
    **dict.fromkeys(("hygon.com/hcumem", "hygon.com/hcucores"), "hygon.com/dcu"),
}

CARD_BY_OTHER_NAME: Mapping[str, str] = {**_NUMBERS, **_SHARES}
"""The resource of a card by its other names."""

# HAMi's names are configurable; these match all of its defaults.
may_be_share = re.compile(
    r"^(?!.*kubernetes\.io/)[^/]+/(.*(mem|memory|cores?|percentage)|priority)$", re.IGNORECASE
).search
"""Match a resource that, if no node offers it, can be a share of a card that an extender such as HAMi counts."""

ASCEND, ASCEND_SHARES = "huawei.com/Ascend", ("-memory", "-core")


def is_share(resource: str) -> bool:
    """Return whether the amount of `resource` is memory or cores of one card, not a number of cards."""
    return resource in _SHARES or (resource.startswith(ASCEND) and resource.endswith(ASCEND_SHARES))
