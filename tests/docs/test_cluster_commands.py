"""The commands of the documents in `shell` blocks print the documented output on a real API server.

The webhook is registered as in deploy/. Its view is the sample cluster, which the documents use for `check`, too.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.cluster import Cluster
from tests.docs.markdown import DOCUMENTS_TO_RUN, ROOT, blocks, name_of, printed_as_shown, steps, write_named_files
from tests.support.servers.server import World, running_in_thread
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.placement.scheduler import Scheduler

SAMPLE = ROOT / "webhook" / "cli" / "sample" / "cluster.yaml"
WITH_SHELL = [document for document in DOCUMENTS_TO_RUN if blocks(document, "shell")]
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a shell whose kubectl uses the namespace of the test, with the webhook registered."""
    view = ClusterView(snapshot_from_documents(parse(SAMPLE.read_text(), SAMPLE.name)), Scheduler())
    with running_in_thread(World(cluster=view, clock=time.monotonic), tmp_path) as server:
        configuration = with_ca_bundle(manifest(Target(url=server.url)), (tmp_path / "ca.crt").read_bytes())
        for webhook in configuration["webhooks"]:
            webhook["failurePolicy"] = "Fail"
        cluster.client.create(configuration)
        cluster.settle_webhooks()
        cluster.client.create(TEAM)
        config = orjson.loads(cluster.control_plane.kubeconfig.read_bytes())
        config["contexts"][0]["context"]["namespace"] = cluster.namespace
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(orjson.dumps(config))
        yield {**os.environ, **cluster.control_plane.kubectl_environment, "KUBECONFIG": str(kubeconfig)}


@pytest.mark.parametrize("document", WITH_SHELL, ids=name_of)
def test_kubectl_prints_what_is_shown(document: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_named_files(document, tmp_path)
    for block in blocks(document, "shell"):
        for step in steps(block):
            ran = subprocess.run(
                ["bash", "-c", step.command],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert printed_as_shown(ran.stdout, step.shown), f"{block.place}: {step.command}\n{ran.stdout}"
