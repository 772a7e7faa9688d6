"""nodeSelector and required node affinity of a pod, with the semantics of upstream."""

from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.reader import Reader
from webhook.placement.framework.node_inclusion import required_affinity_matches
from webhook.placement.pod.pod_info import PodInfo

Object = dict[str, Any]

_INFERENCE = {"key": "use", "operator": "In", "values": ["inference"]}
_NODES = Snapshot.of([NodeInfo.of(Node.of(make_node_object("node-1", labels={"use": "training", "size": "5"})))])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="nothing asked"),
        pytest.param({"nodeSelector": {"use": "training"}}, True, id="nodeSelector"),
        pytest.param({"nodeSelector": {"use": "training", "size": "6"}}, False, id="nodeSelector is ANDed"),
        pytest.param({"affinity": {"nodeAffinity": None}}, True, id="null affinity"),
        pytest.param(
            {
                "nodeSelector": {"use": "training"},
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [_INFERENCE]}]
                        }
                    }
                },
            },
            False,
            id="nodeSelector and affinity are ANDed",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            False,
            id="required affinity without terms matches nothing",
        ),
    ],
)
def test_required_node_affinity(spec: Object, expected: bool) -> None:
    pod = PodInfo.of(Reader(make_pod().spec(**spec).obj()))
    assert bool(required_affinity_matches(pod, _NODES, never)[0]) is expected
