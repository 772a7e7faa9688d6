"""Pending pods of one template are read once, with the facts and the errors of each read by itself."""

import copy
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_pod
from tests.support.random.random_json import replace_somewhere
from webhook.cluster.pods.pending_pod_reader import PendingPodReader
from webhook.cluster.pods.pending_pods import PendingPod
from webhook.documents.field import InvalidInput
from webhook.kube.pod.pod_identity import PodIdentity

_NOBODY = PodIdentity("", "", "", "", "")
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


def _read(read: Any, pod: Any) -> PendingPod | list[str]:
    try:
        found: PendingPod = read(pod)
    except InvalidInput as error:
        return [str(each) for each in error.errors]
    return replace(found, identity=_NOBODY)


@given(st.data())
def test_a_pod_is_read_as_by_itself_after_any_others(data: st.DataObject) -> None:
    reader = PendingPodReader()
    for _ in range(4):
        pod = copy.deepcopy(_RICH)
        for _ in range(data.draw(st.integers(0, 2))):
            replace_somewhere(pod, data)
        assert _read(reader.read, pod) == _read(PendingPod.of, pod)


def test_pods_of_one_template_share_their_content() -> None:
    reader, token = PendingPodReader(), {"name": "kube-api-access-fghij", "projected": {"sources": []}}
    other = {**_RICH, "metadata": {**_RICH["metadata"], "name": "q", "uid": "2"}}
    other["spec"] = {**_RICH["spec"], "volumes": [token, *_RICH["spec"]["volumes"][1:]]}
    first, second = reader.read(_RICH), reader.read(other)
    assert first.content is second.content
    assert [each.identity.token_volume for each in (first, second)] == ["kube-api-access-abcde", token["name"]]
