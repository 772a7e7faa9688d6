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
