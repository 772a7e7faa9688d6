"""Fields that the API server does not know, in the words of its strict decoding."""

import orjson
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_pod
from tests.support.objects.workload_objects import apps
from tools.api_fields import OUTPUT, api_fields
from webhook.kube.api.strict_decoding import unknown_fields

POD = make_pod("p").gpu(1)
ODD = {"name": "c", "image": "x", "resources": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize(
    ("content", "unknown"),
    [
        pytest.param(POD.obj() | {"apiVersion": "v1", "kind": "Pod"}, [], id="a pod"),
        pytest.param(apps("Deployment", template=POD.template()), [], id="a Deployment"),
        pytest.param(
            apps("Deployment", template=POD.template() | {"annotations": {}}),
            ['unknown field "spec.template.annotations"'],
            id="a field of a template",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [ODD]}},
            ['unknown field "spec.containers[0].resources.nvidia.com/gpu"'],
            id="a field of a list item",
        ),
        pytest.param(
            {"apiVersion": "batch/v1", "kind": "Job", "spec": {"x": 1, "template": {"spec": {"y": 1}}}},
            ['unknown field "spec.x"', 'unknown field "spec.template.spec.y"'],
            id="several",
        ),
        pytest.param({"apiVersion": "ray.io/v1", "kind": "RayJob", "x": 1}, [], id="another kind"),
        pytest.param({"apiVersion": "v1", "kind": "Pod", "spec": ["x"], "metadata": 1}, [], id="other types"),
        pytest.param({"apiVersion": "v1", "kind": "Pod", "status": {"x": 1}}, [], id="the status, which is free"),
    ],
)
def test_unknown_fields_are_named_by_their_paths(content: dict[str, object], unknown: list[str]) -> None:
    assert unknown_fields(content) == unknown


def test_only_the_pod_templates_of_other_kinds_are_checked() -> None:
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {"x": 1}}
    template = {"annotations": {}, "spec": {"containers": [ODD]}}

    assert unknown_fields(job, [("spec.a", template), ("spec.b", POD.template())]) == [
        'unknown field "spec.a.annotations"',
        'unknown field "spec.a.spec.containers[0].resources.nvidia.com/gpu"',
    ]


def test_the_number_of_unknown_fields_is_bounded() -> None:
    assert len(unknown_fields({"apiVersion": "v1", "kind": "Pod", **{f"x{n}": 1 for n in range(100)}})) == 20


def test_the_fields_are_those_of_the_newest_release(cluster: Cluster) -> None:
    """A new field that is not listed would be called unknown: `python -m tools.api_fields` writes the list."""
    served = cluster.client.request("GET", "/openapi/v2").object

    assert orjson.loads(OUTPUT.read_bytes()) == api_fields(served["definitions"])
