"""Host ports: which a pod takes, and which conflict."""

from typing import Any

import pytest

from webhook.kube.pod.ports import HostPort, read_host_ports
from webhook.kube.reader import Reader

_EVERYWHERE = HostPort("TCP", 80, "0.0.0.0")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(_EVERYWHERE, True, id="the same"),
        pytest.param(HostPort("TCP", 80, "10.0.0.1"), True, id="every address includes each"),
        pytest.param(HostPort("UDP", 80, "0.0.0.0"), False, id="another protocol"),
        pytest.param(HostPort("TCP", 81, "0.0.0.0"), False, id="another port"),
    ],
)
def test_conflicts(other: HostPort, expected: bool) -> None:
    assert _EVERYWHERE.conflicts(other) is expected
    assert other.conflicts(_EVERYWHERE) is expected


def test_two_addresses_do_not_conflict() -> None:
    assert not HostPort("TCP", 80, "10.0.0.1").conflicts(HostPort("TCP", 80, "10.0.0.2"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"ports": [{"containerPort": 80}]}]}, (), id="container ports are no host ports"),
        pytest.param({"containers": [{"ports": [{"hostPort": 80}]}]}, (_EVERYWHERE,), id="TCP on every address"),
        pytest.param(
            {"containers": [{}, {"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]},
            (HostPort("UDP", 53, "10.0.0.1"),),
            id="as written",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]},
            (_EVERYWHERE,),
            id="on the host's network every port is the host's",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 81, "hostPort": 80}]}]},
            (_EVERYWHERE,),
            id="a host port that is given stands",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 81, "hostPort": 1}]}]},
            (HostPort("TCP", 1, "0.0.0.0"),),
            id="the least host port stands, too",
        ),
        pytest.param(
            {
                "initContainers": [
                    {"ports": [{"hostPort": 81}]},
                    {"restartPolicy": "Always", "ports": [{"hostPort": 80}]},
                ]
            },
            (_EVERYWHERE,),
            id="sidecars keep theirs, other init containers do not",
        ),
    ],
)
def test_host_ports_of_a_pod(spec: dict[str, Any], expected: tuple[HostPort, ...]) -> None:
    reader = Reader(spec)
    assert read_host_ports(reader) == expected
    reader.finish()


def test_malformed_ports_are_reported_with_their_fields() -> None:
    ports = [{"hostPort": "80", "hostIP": 1}]
    reader = Reader({"hostNetwork": "yes", "containers": [{"ports": ports}]}, step="spec")
    read_host_ports(reader)
    assert [error.path for error in reader.errors] == [
        "spec.hostNetwork",
        "spec.containers[0].ports[0].hostPort",
        "spec.containers[0].ports[0].hostIP",
    ]
