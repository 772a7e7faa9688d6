"""The input of a scorer about a pod, and the interface of scorers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import orjson

from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired, never
from webhook.kube.names import KAI_TOPOLOGY, KUEUE_TOPOLOGY
from webhook.kube.reader import Reader
from webhook.placement.framework.result import Placement
from webhook.placement.pod.pod_info import PodInfo
from webhook.runtime.byte_cache import parsed_bytes

# Pods of one template share a cached answer, which is read a thousand times a second; hundreds of templates are in use.
ANSWER_CACHE_BYTES = 12 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PodSignature:
    """The part of a pod that the scheduler reads. Pods with equal signatures have equal placements."""

    info: PodInfo
    size_bytes: int = field(default=0, compare=False)
    """The upper bound of its memory, for caches."""
    _hash: int | None = field(default=None, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        # A cache is asked about one signature for each pod of a template, and hashing it costs more than the lookup.
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self.info))
        return self._hash or 0

    def anywhere(self) -> "PodSignature":
        """Return the signature without the annotations by which Kueue, KAI or Volcano places a gang in one domain."""
        if not self.info.topologies and self.info.network is None:
            return self
        left = tuple(each for each in self.info.topologies if each not in (KUEUE_TOPOLOGY, KAI_TOPOLOGY))
        return replace(self, info=self.info._replace(topologies=left, network=None))

    @classmethod
    def of(cls, pod: Mapping[str, Any], expired: Expired = never, size_bytes: int | None = None) -> "PodSignature":
        """Return the signature of `pod`, a raw API object. `size_bytes` is its memory, if known.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
        """
        return cls.read(deadline_reader(pod, expired), _size_bytes(pod) if size_bytes is None else size_bytes)

    @classmethod
    def read(cls, pod: Reader, size_bytes: int, like: "PodSignature | None" = None) -> "PodSignature":
        """Return the signature of `pod`. `like` is the signature of a pod that differs only in containers and volumes.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
        """
        info = PodInfo.of(pod, None if like is None else like.info)
        pod.finish()
        return cls(info, size_bytes)


def deadline_reader(pod: Mapping[str, Any], expired: Expired) -> Reader:
    """Return a reader of `pod` that raises DeadlineNearError once `expired()` returns true."""
    return Reader(pod, check=partial(_end_if, expired))


def _size_bytes(pod: Mapping[str, Any]) -> int:
    try:
        return parsed_bytes(orjson.dumps(pod))
    except orjson.JSONEncodeError:  # nested too deeply for orjson
        return ANSWER_CACHE_BYTES


def _end_if(expired: Expired) -> None:
    if expired():
        raise DeadlineNearError


class Scorer(Protocol):
    """Predicts the node of a pod: a scheduler, or a wrapper of schedulers."""

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Placement:
        """Return the placement on `snapshot` of a pod with the signature `asked`."""
        ...

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Rows:
        """Return the rows of the nodes of `snapshot` that pass every filter."""
        ...
