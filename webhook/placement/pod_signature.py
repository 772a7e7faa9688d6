"""The part of a pod that its placement depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from webhook.byte_cache import parsed_bytes
from webhook.kube.deadline import DeadlineNearError, Expired, never
from webhook.kube.reader import Reader
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.unmodelled import UnsupportedFeatures

# The answers to pods of one template are looked up a thousand times a second; templates in use are hundreds.
ANSWER_CACHE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PodSignature:
    """The part of a pod that the scheduler reads; pods with equal signatures have equal placements."""

    info: PodInfo
    unsupported: UnsupportedFeatures
    size_bytes: int = field(default=0, compare=False)
    """The memory that it takes at most, for the caches that keep it."""

    @classmethod
    def of(cls, pod: Mapping[str, Any], expired: Expired = never, size_bytes: int | None = None) -> "PodSignature":
        """Return the signature of `pod`, a raw object of the API; `size_bytes` is its memory, where it is known.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
            DeadlineNearError: `expired()` holds.
        """
        reader = Reader(partial(_end_if, expired))
        info = PodInfo.of(reader, pod)
        unsupported = UnsupportedFeatures.of(reader, pod)
        reader.finish()
        return cls(info, unsupported, _size_bytes(pod) if size_bytes is None else size_bytes)


def _size_bytes(pod: Mapping[str, Any]) -> int:
    try:
        return parsed_bytes(orjson.dumps(pod))
    except orjson.JSONEncodeError:  # nested deeper than it writes
        return ANSWER_CACHE_BYTES


def _end_if(expired: Expired) -> None:
    if expired():
        raise DeadlineNearError
