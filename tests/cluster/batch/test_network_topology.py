"""The request of a PodGroup or a pod of Volcano for one HyperNode."""

from typing import Any

import pytest

from webhook.cluster.batch.network_topology import NetworkTopology, key_of_tier, tier_of_key

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"networkTopology": {"mode": "hard", "highestTierAllowed": 0}}, NetworkTopology(True, 0)),
        ({"networkTopology": {"highestTierName": "rack"}}, NetworkTopology(True, None, "rack")),
        ({"networkTopology": {"mode": "soft"}}, NetworkTopology(False, None)),
        ({"subGroupPolicy": [{"networkTopology": {"mode": "soft"}}, {}]}, None),
        (
            {"subGroupPolicy": [{"networkTopology": {"mode": "hard"}}]},
            NetworkTopology(True, None, subgroups="subGroupPolicy"),
        ),
    ],
)
def test_request_of_a_group(spec: Object, expected: NetworkTopology | None) -> None:
    assert NetworkTopology.of(spec) == expected


@pytest.mark.parametrize(
    ("mode", "tier", "expected"),
    [
        ("soft", "1", NetworkTopology(False, 1)),
        ("Soft", None, NetworkTopology(False, None)),
        ("wrong", "2", NetworkTopology(True, 2)),
        (None, "x", NetworkTopology(True, None)),
        (None, None, None),
    ],
)
def test_request_of_a_pod(mode: str | None, tier: str | None, expected: NetworkTopology | None) -> None:
    keys = {"volcano.sh/network-topology-mode": mode, "volcano.sh/network-topology-highest-tier": tier}

    assert NetworkTopology.of_annotations({key: value for key, value in keys.items() if value}) == expected


def test_key_of_a_tier_is_no_label() -> None:
    assert tier_of_key(key_of_tier(2)) == 2
    assert tier_of_key("topology.kubernetes.io/rack") is None


def task(replicas: int | None = 2, size: int = 0, mode: str = "") -> Object:
    """Return a task with partitions of `size` pods, each in a HyperNode of its own with `mode`."""
    policy = {"partitionSize": size, **({"networkTopology": {"mode": mode, "highestTierAllowed": 1}} if mode else {})}
    return ({} if replicas is None else {"replicas": replicas}) | ({"partitionPolicy": policy} if size else {})


WHOLE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
SOFT = {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}


@pytest.mark.parametrize(
    ("spec", "tasks", "expected"),
    [
        pytest.param({}, [task()], None, id="no request"),
        pytest.param(WHOLE, [task()], NetworkTopology(True, 2), id="of the Job"),
        pytest.param({}, [task(4, 2, "hard")], NetworkTopology(True, 1, part=2), id="of the parts"),
        pytest.param({}, [task(None, 2, "hard")], NetworkTopology(True, 1, part=2), id="of a task with the default"),
        pytest.param({}, [task(4, 2, "soft")], None, id="a preference of the parts"),
        pytest.param({}, [task(4, 2)], None, id="parts without a request"),
        pytest.param(
            {}, [task(4, 2, "hard"), task(0)], NetworkTopology(True, 1, part=2), id="beside a task without pods"
        ),
        pytest.param({}, [task(0, 2, "hard"), task()], None, id="of a task without pods"),
        pytest.param(
            {},
            [task(4, 2, "hard"), task()],
            NetworkTopology(True, 1, subgroups="partitionPolicy"),
            id="beside another task",
        ),
        pytest.param(SOFT, [task(4, 2, "hard")], NetworkTopology(True, 1, part=2), id="a preference of the Job beside"),
        pytest.param(
            WHOLE,
            [task(4, 2, "hard")],
            NetworkTopology(True, 2, subgroups="partitionPolicy"),
            id="the Job has one of its own",
        ),
        pytest.param(
            SOFT,
            [task(4, 2, "hard"), task()],
            NetworkTopology(True, 2, subgroups="partitionPolicy"),
            id="a preference of the Job beside another task",
        ),
    ],
)
def test_request_of_a_job(spec: Object, tasks: list[Object], expected: NetworkTopology | None) -> None:
    assert NetworkTopology.of_job({**spec, "tasks": tasks}) == expected
