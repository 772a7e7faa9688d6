"""A pod in an event."""

import orjson

from tests.support.objects.builders import make_pod
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import StoredPod

_RICH = (
    make_pod("p")
    .namespace("x")
    .uid("1")
    .label("app", "web")
    .annotate("maip.mxsf.io/gang", "g")
    .owner("ReplicaSet", "web")
    .requests(cpu="1", memory="1Gi")
    .sidecar("proxy", cpu="100m")
    .host_port(80)
    .spec(
        priority=5,
        schedulingGates=[],
        volumes=[
            {"name": "kube-api-access-abcde", "projected": {"sources": []}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    )
    .status(
        phase="Pending",
        nominatedNodeName="a",
        resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "gpu-1"}],
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}],
    )
    .obj()
)


def test_identity_in_an_event_is_that_of_the_pod() -> None:
    found = StoredPod.in_event(orjson.dumps({"type": "ADDED", "object": _RICH}))
    assert found is not None
    assert found[1].identity == PodIdentity.of(_RICH)
    assert dict(found[1]) == _RICH
