"""The container images that nodes hold, asked for by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask

_LATEST = ":latest"
# Anybody may ask for any number of names.
_MOST_REMEMBERED = 4096


class Image(NamedTuple):
    """One image: its size as the first node that holds it tells it, and which nodes hold it, row by row."""

    size_bytes: int
    held: Mask


class Images:
    """The images of nodes, row by row, each with its size in bytes.

    A pod asks for a few names and nodes hold many, so a name is looked up when it is first asked for, and remembered.
    """

    __slots__ = ("_found", "_nodes")

    def __init__(self, images_by_node: Sequence[Mapping[str, int]]) -> None:
        self._nodes = images_by_node
        self._found: dict[str, Image | None] = {}

    def get(self, name: str) -> Image | None:
        """The image called `name` (normalized), None where no node holds it."""
        if name not in self._found:
            if len(self._found) == _MOST_REMEMBERED:
                self._found.clear()
            self._found[name] = self._look_up(name)
        return self._found[name]

    def _look_up(self, name: str) -> Image | None:
        sizes = [images.get(name) for images in self._nodes]
        held = np.array([size is not None for size in sizes], dtype=np.bool_)
        return next((Image(size, held) for size in sizes if size is not None), None)


def normalized_image_name(name: str) -> str:
    """`name` with the tag `latest` where it has none, as nodes report images.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality/image_locality.go, normalizedImageName
    """
    return name if name.rfind(":") > name.rfind("/") else name + _LATEST
