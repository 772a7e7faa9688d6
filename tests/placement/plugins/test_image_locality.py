"""ImageLocality: images that are there already, by size and spread."""

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, pod_info, scores
from webhook.cluster.snapshot import Snapshot
from webhook.placement.plugins.image_locality import ImageLocality

_MIB = 1024 * 1024


def _pod(*images: str) -> PodBuilder:
    return make_pod().spec(containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])


@pytest.mark.parametrize(
    ("pod", "on_a", "expected"),
    [
        pytest.param(_pod("big"), {"big:latest": 1000 * _MIB}, [48, 0], id="half of the nodes have it"),
        pytest.param(_pod("big"), {"big": 1000 * _MIB}, [0, 0], id="nodes report tags"),
        pytest.param(_pod("big:1"), {"big:latest": 1000 * _MIB}, [0, 0], id="another tag"),
        pytest.param(_pod("r:5000/big"), {"r:5000/big:latest": 1000 * _MIB}, [48, 0], id="a port is no tag"),
        pytest.param(_pod("huge"), {"huge:latest": 9000 * _MIB}, [100, 0], id="no more than the most"),
        pytest.param(_pod("small"), {"small:latest": 46 * _MIB}, [0, 0], id="too small to matter"),
        pytest.param(_pod("big", "none"), {"big:latest": 1000 * _MIB}, [24, 0], id="one of two"),
        pytest.param(_pod("big", "big"), {"big:latest": 1000 * _MIB}, [49, 0], id="the same twice"),
        pytest.param(
            _pod("none").spec(volumes=[{"name": "v", "image": {"reference": "big"}}]),
            {"big:latest": 1000 * _MIB},
            [24, 0],
            id="an image volume",
        ),
    ],
)
def test_node_with_the_images_is_the_better_one(pod: PodBuilder, on_a: dict[str, int], expected: list[int]) -> None:
    assert scores(ImageLocality(), pod, node("a", images=on_a), node("b")) == expected


def test_image_beyond_all_sizes_counts_as_it_does_where_kube_scheduler_counts_in_64_bits() -> None:
    """A float of 2**63 - 1 is 2**63, which amd64 makes the least number of 64 bits."""
    held = {"vast:latest": 2**63 - 1}
    assert scores(ImageLocality(), _pod("vast"), node("a", images=held), node("b", images=held)) == [0, 0]
    assert scores(ImageLocality(), _pod("vast"), node("a", images=held), node("b")) == [100, 0]


def test_size_of_an_image_is_that_on_the_first_node_by_name() -> None:
    nodes = [node(name, images={"big:latest": size * _MIB}) for name, size in (("a", 9000), ("b", 46))]
    assert scores(ImageLocality(), _pod("big"), *nodes) == [100, 100]


def test_image_that_every_node_has_counts_in_full() -> None:
    held = {"big:latest": 1000 * _MIB}
    assert scores(ImageLocality(), _pod("big"), node("a", images=held), node("b", images=held)) == [100, 100]


def test_share_of_the_nodes_is_that_of_the_cluster_not_of_the_feasible_nodes() -> None:
    snapshot = Snapshot.of([node("a", images={"big:latest": 1000 * _MIB}), node("b"), node("c"), node("d")])

    found = [ImageLocality().score(pod_info(_pod("big")), snapshot, np.array(rows)).tolist() for rows in ([0], [0, 1])]

    assert found == [[23], [23, 0]]
