"""Count the cards that a pod requests, under any of their names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import Any

from webhook.kube.names import KAI_SHARE_DEVICES, KAI_SHARES
from webhook.kube.pod.card_names import CARD_BY_OTHER_NAME, is_share
from webhook.kube.pod.resources import read_pod_resources
from webhook.kube.reader import Reader
from webhook.mutation.workload.card_request import is_of_kai
from webhook.policy.policy import Policy


def cards_of(pod: Mapping[str, Any], scheduler: str, gpu_fraction: str | None, policy: Policy) -> int:
    """Return the number of cards that `pod` requests, or 0 for malformed resources, which the API server rejects.

    `scheduler` is the scheduler that the pod will have. `gpu_fraction` is the share that the policy's annotation
    requests.
    """
    reader = Reader(pod)
    containers = read_pod_resources(reader).by_container
    if reader.errors:
        return 0
    total: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for each in containers:
        cards = _cards_of_container(each.amounts, policy)
        if each.is_short_lived:
            peak |= total + cards
        else:
            total += cards
    return (total | peak).total() + _shared_by_kai(pod, scheduler, gpu_fraction, policy)


def _cards_of_container(amounts: Sequence[tuple[str, int]], policy: Policy) -> Counter[str]:
    """Return the cards, by resource, of a container that requests `amounts`, in thousandths.

    A share without a number is one card, even a share of 0, which requests the default.

    Source: github.com/Project-HAMi/HAMi/pkg/device/nvidia/device.go, mutateContainerResource
    """
    of_cards = [(name, milli) for name, milli in amounts if policy.accelerators_of((name,))]
    numbers = [(name, -(-milli // 1000)) for name, milli in of_cards if not is_share(name)]
    if not numbers and of_cards:
        name, _ = of_cards[0]
        numbers = [(CARD_BY_OTHER_NAME.get(name, name), 1)]
    return Counter(dict(numbers))


def _shared_by_kai(pod: Mapping[str, Any], scheduler: str, gpu_fraction: str | None, policy: Policy) -> int:
    """Return the number of cards, rounded up, for a share of KAI, which is a fraction of each of several devices.

    For a share given as memory, each device counts as a whole card, because the size of the card is not known.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/scheduler/api/resource_info/gpu_resource_requirment.go
    """
    own = pod["metadata"].get("annotations") or {}
    fraction, memory = (own.get(key) for key in KAI_SHARES)
    fraction = fraction or gpu_fraction
    if not (fraction or memory) or not is_of_kai(scheduler, policy):
        return 0
    devices = _number(own.get(KAI_SHARE_DEVICES), int) or 1
    share = _number(fraction, Decimal) if fraction and not memory else None
    return max(1, ceil(min(share or Decimal(1), Decimal(1)) * devices))


def _number(text: Any, parse: Callable[[Any], Any]) -> Any:
    """Return a positive number, or None for any other text, which KAI rejects."""
    try:
        number = parse(text)
        is_positive = number > 0
    except (TypeError, ValueError, ArithmeticError):
        return None
    return number if is_positive else None
