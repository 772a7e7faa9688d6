"""PlacementPolicy objects, and their kind on a real API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.support.objects.manifests import DEPLOY
from tools.custom_resource import NAME
from webhook.policy.spec.document import API_VERSION, KIND

CRD = DEPLOY / "crd" / "placementpolicies.yaml"

Object = dict[str, Any]


def policy(name: str, team: str = "", **spec: Any) -> Object:
    """Return the object `name` with this spec, which selects the namespaces with the label `team`, if it is given."""
    selection = {"namespaceSelector": {"matchLabels": {"team": team}}} if team else {}
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}
    return head | {"spec": selection | spec}


@contextmanager
def served_policies(control_plane: ControlPlane) -> Iterator[None]:
    """Serve the kind of deploy/crd until the block ends; then its objects are gone, too."""
    crd = yaml.load(CRD.read_text(), yaml.CSafeLoader)
    control_plane.client.apply(crd)
    wait_for(
        lambda: control_plane.kubectl("get", "placementpolicies", check=False).returncode == 0, "the kind being served"
    )
    try:
        yield
    finally:
        control_plane.client.delete("CustomResourceDefinition", NAME, api_version=crd["apiVersion"])
