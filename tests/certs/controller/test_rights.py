"""The controller's deployed rights: they are enough, and each of them is needed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import pytest

from certs.registration import Target
from certs.secret import artifacts_in
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.manifests import read
from tests.support.on_cluster.service_account import RBAC, token_kubeconfig
from tests.support.servers.loopback import closed_port, tls_server
from tests.support.tls.certificates import server_of
from tests.support.tls.certs_controller import Installation, Running, controlling

RIGHTS = read("overlays/self-managed/certs-rbac.yaml")
NAMESPACE, CERTS_NAMESPACE = Target().namespace, Target().controller_namespace
# Each verb on each kind, with what the controller cannot do without it.
NEEDED = [
    (rule["resources"][0], verb) for content in RIGHTS for rule in content.get("rules", ()) for verb in rule["verbs"]
]


class Refused(Exception):  # noqa: N818 - the API's word for it
    """The controller reported that it may not do something."""


@contextmanager
def granted(cluster: Cluster, folder: Path, *, without: tuple[str, str] | None = None) -> Iterator[Path]:
    """Yield a kubeconfig of the controller's service account, with the deployed rights but one."""
    for name in (NAMESPACE, CERTS_NAMESPACE):
        cluster.make_namespace(name)
    for content in deepcopy(RIGHTS):
        for rule in content.get("rules", ()):
            if without is not None and without[0] in rule["resources"]:
                rule["verbs"].remove(without[1])
        cluster.client.create(content)
    try:
        yield token_kubeconfig(cluster, folder, CERTS_NAMESPACE, "placement-webhook-certs")
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            cluster.client.delete(kind, "placement-webhook-certs", api_version=RBAC)


def reported(controller: Running, done: object) -> object:
    """Return `done` if it is true; raise Refused if the controller reports a 403."""
    text = controller.readiness()[1]
    if re.search(r"\b403\b", text):
        raise Refused(text)
    return done or None


def live(cluster: Cluster, kubeconfig: Path) -> None:
    """Let the controller do everything once: create both objects, rotate, and repair a caBundle at an event."""
    installation, port = Installation(cluster, NAMESPACE), closed_port()
    options = installation.options(creates=True, probe_at=f"127.0.0.1:{port}")
    with controlling(kubeconfig, options) as controller:
        wait_for(lambda: reported(controller, installation.key_material().issuer), "the pair")
        with tls_server(server_of(artifacts_in(installation.secret())), port):
            wait_for(lambda: reported(controller, installation.configuration()), "the configuration")
            wait_for(lambda: reported(controller, installation.is_steady()), "one CA")
            value = [{"op": "remove", "path": f"/webhooks/{index}/clientConfig/caBundle"} for index in range(3)]
            installation.patch_configuration(value)
            wait_for(lambda: reported(controller, installation.is_steady()), "the caBundle")
            controller.wait_ready()


def test_the_deployed_rights_are_enough(cluster: Cluster, tmp_path: Path) -> None:
    with granted(cluster, tmp_path) as kubeconfig:
        live(cluster, kubeconfig)


@pytest.mark.parametrize("right", NEEDED, ids=lambda right: f"{right[1]} {right[0]}")
def test_each_right_is_needed(cluster: Cluster, tmp_path: Path, right: tuple[str, str]) -> None:
    resource, verb = right
    with (
        granted(cluster, tmp_path, without=right) as kubeconfig,
        pytest.raises(Refused, match=f'cannot {verb} resource "{resource}"'),
    ):
        live(cluster, kubeconfig)
