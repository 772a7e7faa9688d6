"""An API server that runs the optional plugins completes, refuses and so places pods as it is taken to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.objects.api_server import Object, namespace
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import made_anew
from webhook.admission.api_server.optional_plugins import alternatives
from webhook.admission.api_server.plugins import completed
from webhook.documents.field import InvalidInput

PLUGINS = ("PodNodeSelector", "PodTolerationRestriction", "ExtendedResourceToleration")
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
CARD = "example.com/card"
EQUAL = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
OTHER = {**EQUAL, "value": "b"}
CARDS: Object = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {CARD: 1}}}]}
# DefaultTolerationSeconds adds them before the list of the namespace is read.
BY_DEFAULT = {"operator": "Exists", "effect": "NoExecute"}


@pytest.fixture(scope="module")
def optional(control_plane_programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ControlPlane(control_plane_programs, tmp_path_factory.mktemp("optional"), plugins=PLUGINS) as running:
        yield Cluster(running)


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({SELECTOR: "rack=r1, disk = ssd"}, {"nodeSelector": {"a": "b"}}),
        ({SELECTOR: "rack=r1"}, {"nodeSelector": {"rack": "r1"}}),
        ({SELECTOR: "rack=r1"}, {"nodeSelector": {"rack": "r2"}}),
        ({SELECTOR: "rack"}, {}),
        ({SELECTOR: ""}, {}),
        ({TOLERATIONS: json.dumps([EQUAL])}, {}),
        ({TOLERATIONS: json.dumps([EQUAL])}, {"tolerations": [OTHER]}),
        ({TOLERATIONS: ""}, {}),
        ({TOLERATIONS: "{"}, {}),
        ({ALLOWED: json.dumps([EQUAL, BY_DEFAULT])}, {"tolerations": [EQUAL]}),
        ({ALLOWED: json.dumps([EQUAL, BY_DEFAULT])}, {"tolerations": [OTHER]}),
        ({}, CARDS),
        ({}, {**CARDS, "tolerations": [{"key": CARD, "operator": "Equal", "value": "x"}]}),
        ({SELECTOR: "rack=r1", TOLERATIONS: json.dumps([EQUAL])}, CARDS),
    ],
)
def test_pods_are_stored_as_where_the_plugins_run(
    optional: Cluster, annotations: dict[str, str], spec: Object, request: pytest.FixtureRequest
) -> None:
    name = f"optional-{request.node.callspec.indices['annotations']}"
    optional.client.create(namespace(name, **annotations))
    pod = make_pod("p").namespace(name).spec(**spec).obj()
    snapshot = made_anew([make_node_object("n", taints=[f"{CARD}=yes:NoSchedule"]), namespace(name, **annotations)])
    (_, where_they_run), *_ = [*alternatives(PLUGINS, snapshot)][-1:]
    try:
        stored = optional.client.create(pod, dry_run=True).object
    except ApiError:
        with pytest.raises(InvalidInput):
            completed(pod, where_they_run)
        return
    predicted = completed(pod, where_they_run).pod["spec"]

    assert (predicted.get("nodeSelector") or {}) == (stored["spec"].get("nodeSelector") or {})
    assert _own(predicted) == _own(stored["spec"])


def _own(spec: Object) -> list[Object]:
    """Return the tolerations without those of Kubernetes itself."""
    found = [each for each in spec.get("tolerations") or () if not each.get("key", "").startswith("node.kubernetes.io")]
    return sorted(found, key=json.dumps)
