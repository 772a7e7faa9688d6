"""With `--client-ca`, the certificate of the real API server is accepted, and no other client is."""

import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, review_bytes, running_in_thread

TRAINING = make_pod("trainer").annotate(TYPE, "training")
# The name in the certificate that tests/controlplane/credentials.py issues.
API_SERVER = "kube-apiserver-webhook-client"


def client_ca(cluster: Cluster, folder: Path) -> Path:
    """A file with the CA of the certificate that the API server presents to webhooks."""
    path = folder / "clients.crt"
    path.write_text(cluster.control_plane.ca_pem)
    return path


def test_api_server_presents_its_certificate_and_another_client_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    world = World(clock=time.monotonic)
    settings = {"client_ca": client_ca(cluster, tmp_path), "client_names": ("kube-apiserver-*",)}
    with running_in_thread(world, tmp_path, **settings) as server:
        cluster.register_webhook(server.url, (tmp_path / "ca.crt").read_text())

        stored = cluster.create(TRAINING).object

        request = urllib.request.Request(
            server.url, review_bytes(TRAINING.obj()), {"Content-Type": "application/json"}, method="POST"
        )
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, context=trust)

    assert stored["spec"]["schedulerName"] == "volcano"
    assert [(record.client, record.namespace) for record in world.records] == [(API_SERVER, cluster.namespace)]


def test_api_server_reports_why_its_certificate_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"client_ca": client_ca(cluster, tmp_path), "client_names": ("front-proxy-client",)}
    with running_in_thread(World(clock=time.monotonic), tmp_path, **settings) as server:
        cluster.register_webhook(server.url, (tmp_path / "ca.crt").read_text())

        with pytest.raises(ApiError, match=f"certificate of {API_SERVER} has no name that --client-name allows"):
            cluster.create(TRAINING)

    assert json.loads((cluster.control_plane.folder / "admission.json").read_text())["kind"] == "AdmissionConfiguration"
