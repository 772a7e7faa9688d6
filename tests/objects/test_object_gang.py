"""The gang of a pod as it is written: its name, its size and its scheduler."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, policy_with
from webhook.backends.references import GangRequest
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.objects.object_gang import gang_of_pod

GANG, SIZE = f"{DOMAIN}/gang", f"{DOMAIN}/gang-size"


def gang(annotations: object, scheduler: object = None) -> GangRequest | None:
    pod: dict[str, Any] = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"schedulerName": scheduler}}
    return gang_of_pod(pod, policy_with(), snapshot_from_documents([]))


@pytest.mark.parametrize(
    ("annotations", "scheduler", "name", "size", "missing"),
    [
        ({SIZE: "4"}, None, "", 4, ""),
        ({SIZE: "4", GANG: "bert"}, "volcano", "bert", 4, ""),
        ({SIZE: "4"}, "volcano", "", 4, GANG),
        ({SIZE: "4", GANG: 7}, "volcano", "", 4, GANG),
    ],
    ids=["a size", "a size and a name", "a size without the name that its scheduler reads", "a name that is no text"],
)
def test_gang_of_annotations(annotations: object, scheduler: str | None, name: str, size: int, missing: str) -> None:
    found = gang(annotations, scheduler)

    assert found is not None
    assert (found.name, found.size, found.missing) == (name, size, missing)
    assert found.scheduler == (scheduler or "default-scheduler")


@pytest.mark.parametrize(
    ("annotations", "scheduler"),
    [
        (None, None),
        ({}, "volcano"),
        ({GANG: "bert"}, "volcano"),
        ({SIZE: "0", GANG: "bert"}, None),
        ({SIZE: "many"}, None),
        ({SIZE: 4}, None),
        ({SIZE: "4"}, 5),
    ],
    ids=["none", "others", "no size", "no pod", "no number", "a size that is no text", "a scheduler that is no text"],
)
def test_pod_without_a_valid_size_is_in_no_gang(annotations: object, scheduler: object) -> None:
    assert gang(annotations, scheduler) is None
