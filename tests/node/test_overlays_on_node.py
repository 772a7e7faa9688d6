"""Each overlay, installed on a real node by the commands of the pages, used, and removed."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import pytest

from tests.controlplane.polling import Stopwatch, wait_for
from tests.node.cert_manager import playing_cert_manager
from tests.node.installation import (
    CERTS_NAMESPACE,
    NAMESPACE,
    ROLLOUT_SECONDS,
    TEAM,
    Installation,
    pod,
)
from tests.node.running.configuration import NODE_NAME

DEPLOY_PAGE = "deploy/README.md"
REMOVED = "deploy/overlays/self-managed"


@dataclass(frozen=True, slots=True)
class Overlay:
    """The page and the heading of the commands that install the overlay, and the Deployments that it has."""

    page: str = DEPLOY_PAGE
    heading: str = "Self-managed certificates"
    deployments: tuple[str, ...] = (NAMESPACE, CERTS_NAMESPACE)
    outcome: str = "Patched"


OVERLAYS = {
    "self-managed": Overlay(),
    "cert-manager": Overlay(heading="cert-manager", deployments=(NAMESPACE,)),
    "crd": Overlay("docs/policy.md", "Policies in the cluster"),
    "exported": Overlay("docs/exported-policy.md", "In the cluster", outcome="Unchanged"),
    "templates": Overlay("docs/workloads.md", "Templates"),
    "mtls": Overlay("docs/mtls.md", "The API server's side"),
}


@contextmanager
def installed(name: str, installation: Installation) -> Iterator[None]:
    """Install the overlay by its page, and remove it by deploy/README.md."""
    overlay = OVERLAYS[name]
    installation.choose_default_scheduler()
    (installation.shell.folder / "ca.crt").write_bytes(installation.node.ca.read_bytes())
    began = Stopwatch()
    with playing(name, installation):
        try:
            installation.shell.run_block(overlay.page, overlay.heading)
            installation.wait_for_rollout(began, *overlay.deployments)
            yield
        finally:
            # It also leaves the node to the next test if this one fails.
            installation.shell.run_block(DEPLOY_PAGE, "Removal", replaced={REMOVED: f"deploy/overlays/{name}"})
            if name == "crd":
                installation.shell("kubectl delete -k deploy/crd")
    installation.wait_removed()


def playing(name: str, installation: Installation) -> AbstractContextManager[None]:
    return playing_cert_manager(installation.client, ROLLOUT_SECONDS) if name == "cert-manager" else nullcontext()


@pytest.mark.parametrize("name", OVERLAYS)
def test_overlay_serves_a_pod_that_runs(name: str, installation: Installation) -> None:
    """A GPU pod is injected, bound where it was predicted, and runs; one that fits nowhere is warned of."""
    with installed(name, installation):
        installation.assert_pod_security()
        with installation.team(), installation.pool():
            installation.assert_works(OVERLAYS[name].outcome)
            assert_part_of(name, installation)


def assert_part_of(name: str, installation: Installation) -> None:
    """The part that the overlay adds has its effect."""
    if name == "crd":
        policy = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
        installation.create(policy | {"metadata": {"name": "default"}, "spec": {"mode": "shadow"}})
        kind, version = policy["kind"], policy["apiVersion"]

        def accepted() -> bool:
            status = installation.client.get(kind, "default", api_version=version).get("status", {})
            return any(each["reason"] == "Applied" for each in status.get("conditions", []))

        wait_for(accepted, "the status of the policy")
    if name == "templates":
        created = pod("template")
        template = {"metadata": {"labels": {"app": "t"}, **created["metadata"]}, "spec": created["spec"]}
        del template["metadata"]["name"], template["metadata"]["namespace"]
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "t"}}, "template": template}
        metadata = {"name": "template", "namespace": TEAM}
        installation.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        stored = installation.client.get("Deployment", "template", TEAM, api_version="apps/v1")
        assert stored["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
        assert "tolerations" in stored["spec"]["template"]["spec"]
    if name == "mtls":
        address = installation.client.get("Service", NAMESPACE, NAMESPACE)["spec"]["clusterIP"]
        call = f"curl --insecure --silent --output /dev/null --write-out '%{{http_code}}' -d x https://{address}/mutate"
        assert installation.shell(call).stdout == "403"


def test_the_console_shows_the_node(installation: Installation) -> None:
    with installed("self-managed", installation):
        installation.shell.run_block("docs/console.md", "In a cluster")
        installation.wait_for_rollout(Stopwatch(), "placement-webhook-console")
        forward = installation.shell.block("docs/console.md", "In a cluster", 1)
        retries = "--retry 20 --retry-delay 1 --retry-connrefused"
        ask = f"curl --silent --fail {retries} '127.0.0.1:8090/api/node?name={NODE_NAME}'"
        shown = installation.shell(f'{forward.strip()} >/dev/null 2>&1 & trap "kill $!" EXIT; {ask}').stdout
        assert json.loads(shown)["name"] == NODE_NAME
        installation.shell("kubectl delete -k deploy/overlays/console")
