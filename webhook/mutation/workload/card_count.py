"""Count the cards that a pod requests, by whatever name."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from webhook.documents.field import InvalidInput
from webhook.kube.names import KAI_SHARE_DEVICES, KAI_SHARES
from webhook.kube.pod.card_names import is_share
from webhook.kube.pod.resources import pod_requests
from webhook.mutation.workload.card_request import is_of_kai
from webhook.policy.policy import Policy


def cards_of(pod: Mapping[str, Any], scheduler: str, gpu_fraction: str | None, policy: Policy) -> int:
    """Return the number of cards that `pod` requests; 0 if its resources are malformed: the API server rejects it.

    `scheduler` will schedule it, and `gpu_fraction` is the share that the annotation of the policy requests.
    """
    try:
        requests = pod_requests(pod)
    except InvalidInput:
        return 0
    numbers = (amount for name, amount in requests.items() if not is_share(name) and policy.accelerators_of((name,)))
    return sum(numbers) + _shared_by_resource(pod, policy) + _shared_by_kai(pod, scheduler, gpu_fraction, policy)


def _shared_by_resource(pod: Mapping[str, Any], policy: Policy) -> int:
    """Return the number of containers that request a share of a card and no number of cards."""
    found = 0
    for field in ("containers", "initContainers"):
        for container in pod["spec"].get(field) or ():
            resources = container.get("resources") or {}
            names = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            of_cards = [is_share(name) for name in names if policy.accelerators_of((name,))]
            found += bool(of_cards) and all(of_cards)
    return found


def _shared_by_kai(pod: Mapping[str, Any], scheduler: str, gpu_fraction: str | None, policy: Policy) -> int:
    """Return the cards that a share of KAI amounts to, rounded up: the fraction of each of a number of devices.

    A share by memory is that of a card of unknown size, so each device counts as a card.

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
    """Return a positive number; None for any other text, which KAI rejects."""
    try:
        number = parse(text)
        is_positive = number > 0
    except (TypeError, ValueError, ArithmeticError):
        return None
    return number if is_positive else None
