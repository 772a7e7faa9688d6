"""The controller of a pod that a user changes."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from webhook.kube.pod.top_controller import top_controller

OF_SRV = make_pod("a").owner("ReplicaSet", "srv-5d9")


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (make_pod("a"), None),
        (make_pod("a").owner("Job", "train", api_version="batch/v1"), ("Job", "train", "batch/v1")),
        (
            make_pod("a").owner("ReplicaSet", "srv-5d9").label("pod-template-hash", "5d9"),
            ("Deployment", "srv", "apps/v1"),
        ),
        (OF_SRV, ("ReplicaSet", "srv-5d9", "apps/v1")),
        (make_pod("a").owner("ReplicaSet", "srv-").label("pod-template-hash", ""), ("ReplicaSet", "srv-", "apps/v1")),
    ],
)
def test_the_controller_of_a_replica_set_of_a_deployment_is_the_deployment(
    pod: PodBuilder, expected: tuple[str, str, str] | None
) -> None:
    assert top_controller(pod.obj()) == expected


@pytest.mark.parametrize("references", [None, "x", ["x"], [{"kind": "Job", "name": "train"}]])
def test_references_of_other_shapes_name_no_controller(references: Any) -> None:
    assert top_controller({"metadata": {"ownerReferences": references}}) is None
