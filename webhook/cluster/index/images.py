"""Index of the container images on nodes by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask

_LATEST = ":latest"
# Bounds the cache: users control the names and their number.
_MOST_REMEMBERED = 4096


class Image(NamedTuple):
    """One image: its size on the first node that has it, and a mask of the nodes that have it."""

    size_bytes: int
    held: Mask


class Images:
    """The images of nodes in rows, with sizes in bytes. An image is looked up at its first use: a pod has few."""

    __slots__ = ("_found", "_nodes")

    def __init__(self, images_by_node: Sequence[Mapping[str, int]]) -> None:
        self._nodes = images_by_node
        self._found: dict[str, Image | None] = {}

    def get(self, name: str) -> Image | None:
        """Return the image `name` (normalized), or None if no node has it."""
        if name not in self._found:
            if len(self._found) == _MOST_REMEMBERED:
                self._found.clear()
            sizes = [images.get(name) for images in self._nodes]
            held = np.array([size is not None for size in sizes], dtype=np.bool_)
            self._found[name] = next((Image(size, held) for size in sizes if size is not None), None)
        return self._found[name]


def normalized_image_name(name: str) -> str:
    """Return `name` with the tag `latest` if it has none, as nodes report images.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality/image_locality.go, normalizedImageName
    """
    return name if name.rfind(":") > name.rfind("/") else name + _LATEST
