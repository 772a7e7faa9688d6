"""Scores by the storage that claims would get, since 1.37."""

import pytest

from tests.placement.profiles.release_clusters import Object, placed
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.storage import (
    available,
    make_capacity,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)

_ZONE = "topology.kubernetes.io/zone"
_NODES = [make_node_object(name, labels={_ZONE: name}) for name in "ab"]


def _storage_scores(release: int, *objects: Object) -> list[float]:
    pod = make_pod().spec(volumes=uses("c"))
    classes = (make_storage_class("late"), make_csi_node("a"))
    placement = placed(release, pod, *_NODES, make_pvc("c", "late"), *classes, *objects)
    assert placement.feasible == len(_NODES)
    return [placement.scores[name].get("VolumeBinding", -1) for name in "ab"]


_FREE = [make_capacity(name, "late", size, on={_ZONE: name}) for name, size in (("a", "4Gi"), ("b", "2Gi"))]
_VOLUMES = [
    available(make_pv(name, "late", on={_ZONE: [name]}, storage=size)) for name, size in (("a", "4Gi"), ("b", "1Gi"))
]


@pytest.mark.parametrize(("release", "expected"), [(36, [-1, -1]), (37, [75, 50])])
def test_a_node_with_more_free_storage_scores_higher(release: int, expected: list[int]) -> None:
    assert _storage_scores(release, make_csi_driver(tracks_capacity=True), *_FREE) == expected


@pytest.mark.parametrize(("release", "expected"), [(36, [-1, -1]), (37, [75, 0])])
def test_a_node_whose_volume_is_hardly_used_scores_higher(release: int, expected: list[int]) -> None:
    assert _storage_scores(release, make_csi_driver(), *_VOLUMES) == expected


def test_storage_that_nothing_is_known_of_scores_nothing() -> None:
    assert _storage_scores(37, make_csi_driver(), make_pv("other")) == [0, 0]


def test_several_capacities_of_a_node_leave_the_score_open() -> None:
    """kube-scheduler takes the first large enough one, in the random order of a Go map."""
    pod = make_pod().spec(volumes=uses("c"))
    objects = (make_pvc("c", "late"), make_storage_class("late"), make_csi_driver(tracks_capacity=True), make_pv("v"))
    csi_nodes = [make_csi_node(name) for name in "ab"]

    def unmodelled(*capacities: Object) -> tuple[str, ...]:
        placement = placed(37, pod, *_NODES, *objects, *csi_nodes, *capacities)
        assert placement.verdict == "Feasible"
        return placement.unmodelled

    assert unmodelled(*_FREE) == ()
    assert unmodelled(*_FREE, make_capacity("more", "late", "9Gi", on={_ZONE: "a"})) == ("VolumeBinding",)
    assert unmodelled(*_FREE, make_capacity("wide", "late", largest="9Gi", on={})) == ("VolumeBinding",)


def test_volumes_for_several_claims_of_a_class_are_summed() -> None:
    """On a, 2 Gi of 6 Gi are requested: 33 percent; on b, all of it."""
    pod = make_pod().spec(volumes=uses("c", "d"))
    claims = [make_pvc(name, "late") for name in ("c", "d")]
    volumes = [
        available(make_pv(f"{name}-{size}", "late", on={_ZONE: [name]}, storage=size))
        for name, size in (("a", "2Gi"), ("a", "4Gi"), ("b", "1Gi"), ("b", "1024Mi"))
    ]
    placement = placed(37, pod, *_NODES, *claims, *volumes, make_storage_class("late"), make_csi_driver())

    assert [placement.scores[name]["VolumeBinding"] for name in "ab"] == [67, 0]
