"""The gangs of a pod are read of its annotations, in any key domain, within bounds."""

from typing import Any

import pytest

from webhook.kube.pod.gang_key import GangKey, gang_annotations, gangs_of

OWNERS = [{"kind": "Job", "name": "resnet", "controller": True}]


@pytest.mark.parametrize(
    ("annotations", "owners", "expected"),
    [
        ({}, [], []),
        ({"maip.mxsf.io/gang": "train", "maip.mxsf.io/gang-size": "8"}, OWNERS, [("maip.mxsf.io/gang", "train")]),
        ({"b.example/gang": "y", "a.example/gang": "x"}, [], [("a.example/gang", "x"), ("b.example/gang", "y")]),
        ({"maip.mxsf.io/gang-size": "8"}, OWNERS, [("maip.mxsf.io/gang-size", "resnet")]),
        ({"maip.mxsf.io/gang-size": "8"}, [], []),
        ({"maip.mxsf.io/gang-size": "8"}, [{"kind": "Job", "name": "resnet"}], []),
        ({"maip.mxsf.io/gang-size": "8"}, "none", []),
        ({"maip.mxsf.io/gang": ""}, [], []),
        ({"maip.mxsf.io/gang": 8}, [], []),
        ({"maip.mxsf.io/gang": "g" * 64}, [], []),
        ({"d" * 320 + "/gang": "train"}, [], []),
        ("none", [], []),
    ],
)
def test_gangs_are_named_by_annotation_else_by_the_controller_of_the_pods(
    annotations: Any, owners: Any, expected: list[tuple[str, str]]
) -> None:
    found = gangs_of("team-a", {"annotations": annotations, "ownerReferences": owners})

    assert found == tuple(GangKey("team-a", *each) for each in expected)


def test_few_gangs_of_a_pod_are_kept() -> None:
    many = {f"d{number}.example/gang": "train" for number in range(100)}

    assert len(gangs_of("team-a", {"annotations": many})) == 3
    assert len(gang_annotations(many)) == 6
    assert gang_annotations({"maip.mxsf.io/queue": "q"}) == {}
