"""The choice among devices."""

from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.placement.dra.device_allocator import (
    Choice,
    IndexedRequest,
)


def choice_for(*requests: DeviceRequest, claim: int = 0, first: int = 0, constraints: tuple[int, ...] = ()) -> Choice:
    return Choice(
        tuple(IndexedRequest(each, number, constraints) for number, each in enumerate(requests, first)), claim
    )
