"""The names of resources, by kind."""

import pytest

from tests.support.objects.builders import make_pod
from webhook.kube.pod.amounts import is_extended_resource, is_scalar_resource, is_schedulable_resource
from webhook.kube.pod.resources import (
    requested_extended_resources,
)


def test_extended_resources_are_named_where_some_are_requested() -> None:
    pod = make_pod().requests(cpu="1", **{"hugepages-2Mi": "4Mi"}).gpu(8).gpu(1, "amd.com/gpu").gpu(0, "x.io/y").obj()
    assert requested_extended_resources(pod) == ("amd.com/gpu", "nvidia.com/gpu")


@pytest.mark.parametrize(
    ("name", "extended", "scalar", "schedulable"),
    [
        ("cpu", False, False, True),
        ("memory", False, False, True),
        ("ephemeral-storage", False, False, True),
        ("nvidia.com/gpu", True, True, True),
        ("hugepages-1Gi", False, True, True),
        ("attachable-volumes-aws-ebs", False, True, True),
        ("node.kubernetes.io/x", False, True, True),
        ("requests.example.com/x", False, False, False),
        ("storage", False, False, False),
        ("pods", False, False, False),
    ],
)
def test_kinds_of_resources(name: str, extended: bool, scalar: bool, schedulable: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar
    assert is_schedulable_resource(name) is schedulable
