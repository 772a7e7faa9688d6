"""The gangs of a pod are read of its annotations, in any key domain, within bounds."""

import pytest

from webhook.kube.gang_key import GangKey, gangs_of


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, []),
        ({"maip.mxsf.io/gang": "train", "maip.mxsf.io/gang-size": "8"}, [("maip.mxsf.io/gang", "train")]),
        ({"b.example/gang": "y", "a.example/gang": "x"}, [("a.example/gang", "x"), ("b.example/gang", "y")]),
        ({"maip.mxsf.io/gang": ""}, []),
        ({"maip.mxsf.io/gang": 8}, []),
        ({"maip.mxsf.io/gang": "g" * 64}, []),
        ({"d" * 320 + "/gang": "train"}, []),
    ],
)
def test_gangs_are_the_annotations_that_end_with_gang(
    annotations: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert gangs_of("team-a", annotations) == tuple(GangKey("team-a", *each) for each in expected)


def test_few_gangs_of_a_pod_are_kept() -> None:
    assert len(gangs_of("team-a", {f"d{number}.example/gang": "train" for number in range(100)})) == 3
