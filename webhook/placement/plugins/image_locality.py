"""ImageLocality: prefer nodes that have the pod's images."""

import numpy as np

from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.release import Change
from webhook.placement.framework.interface import MAX_NODE_SCORE, Scope
from webhook.placement.pod.pod_info import PodInfo

_MEBIBYTE = 1024 * 1024
_BEYOND_INT64 = 2**63
MIN_THRESHOLD_BYTES = 23 * _MEBIBYTE
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * _MEBIBYTE


class ImageLocality:
    """Score by the size of the pod's images on a node, each scaled by the share of nodes that have it.

    The scaling prevents a node that is the only one with an image from attracting all pods with this image.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality/image_locality.go
    """

    name = "ImageLocality"
    scope = Scope.FACTS

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """Return 0 for up to 23 MiB of images, 100 from 1000 MiB for each container and volume, and linear between."""
        held_bytes = np.zeros(len(rows), dtype=np.int64)
        is_held = False
        counts_volumes = nodes.release.has(Change.IMAGE_VOLUMES_SCORE)
        images = (*pod.images, *pod.image_volumes) if counts_volumes else pod.images
        for name in in_time(images, expired):
            image = nodes.images.get(name)
            if image is not None:
                is_held = True
                spread_ratio = int(np.count_nonzero(image.held)) / len(nodes.nodes)
                held_bytes += _int64(image.size_bytes * spread_ratio) * image.held[rows]
        if not is_held:
            return held_bytes
        volumes = len(pod.image_volumes) if nodes.release.has(Change.IMAGE_VOLUMES_COUNT) else 0
        most_bytes = MAX_CONTAINER_THRESHOLD_BYTES * max(pod.containers + volumes, 1)
        counted_bytes = np.clip(held_bytes, MIN_THRESHOLD_BYTES, most_bytes) - MIN_THRESHOLD_BYTES
        return MAX_NODE_SCORE * counted_bytes // (most_bytes - MIN_THRESHOLD_BYTES)


def _int64(number: float) -> int:
    """Return `number` as Go on amd64 converts it to an int64: truncated, or the smallest int64 if it overflows."""
    return int(number) if number < _BEYOND_INT64 else -_BEYOND_INT64
