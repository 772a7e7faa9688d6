"""The console of a real API server: its own rights are enough, and pods appear on the page as they come."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

from placement_console.application import all_endpoints
from placement_console.page import Asked, Sources, fixed_sources
from placement_console.serving import listening, sources_of
from tests.console.browser import TestBrowser, until
from tests.console.example_cluster import gpu_node, pod
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.manifests import DEPLOY, read
from tests.support.on_cluster.replicas import kubelet, log_of, start_replica
from tests.support.on_cluster.service_account import RBAC, token_kubeconfig
from tests.support.programs.audit_records import make_record
from tests.support.programs.command import run_here
from tests.support.servers.fake_kubelet import Kubelet
from webhook.cli.inputs.session import Session
from webhook.cli.output.terminal import remarks_taken
from webhook.runtime.settings import Address

__all__ = ["kubelet"]

NAMESPACE, NAME = "placement-webhook", "placement-webhook-console"


@pytest.fixture
def deployed(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of the console that deploy/overlays/console installs."""
    cluster.make_namespace(NAMESPACE)
    manifests = cluster.control_plane.kubectl("kustomize", str(DEPLOY / "overlays" / "console")).stdout
    cluster.control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=manifests)
    try:
        yield token_kubeconfig(cluster, tmp_path, NAMESPACE, NAME)
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            cluster.client.delete(kind, NAME, api_version=RBAC)


def test_the_admissions_are_those_of_the_replicas(deployed: Path, cluster: Cluster, kubelet: Kubelet) -> None:
    start_replica(cluster, "webhook-0", namespace=NAMESPACE, args=["serve", "--audit=-"])
    kubelet.logs["webhook-0", False] = log_of(1, 2, replica="webhook-0")
    sources, view = sources_of(Session(kubeconfig=deployed, needs_pods=False), ())
    (listed, decision) = (each for each in all_endpoints(sources) if each.path.startswith("/api/admissions"))

    assert view is not None
    found: Any = listed.answer(Asked(view.snapshot()))
    detail: Any = decision.answer(Asked(view.snapshot(), {"decision": make_record(2).decision}))

    assert [row["name"] for row in found["rows"]] == ["worker-2", "worker-1"]
    assert detail["replica"] == "webhook-0"
    assert [*listed.reported()] == []


def _create(cluster: Cluster, content: dict[str, Any]) -> None:
    cluster.client.create(content, namespace=content["metadata"].get("namespace"))


def test_the_page_follows_a_live_cluster(cluster: Cluster, browser: TestBrowser, tmp_path: Path) -> None:
    cluster.make_namespace("team-a")
    _create(cluster, gpu_node("gpu-1", "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}))
    cluster.client.create(pod("team-a", "waits", 16, type="training", uid=False), namespace="team-a")
    session = Session(kubeconfig=cluster.control_plane.kubeconfig, needs_pods=False)
    sources, live = sources_of(session, ())
    assert live is not None

    async def follow() -> tuple[str | None, str | None]:
        running = asyncio.create_task(live.run())
        try:
            async with listening(sources, Address("127.0.0.1", 0)) as address, browser.page() as page:
                await page.goto(f"http://{address}/")
                await page.wait_for_selector(".group canvas")
                before = await page.locator(".summary").text_content()
                await asyncio.to_thread(_create, cluster, pod("team-a", "runs", 3, "gpu-1", type="training", uid=False))

                async def is_shown() -> bool:
                    return "5 free" in str(await page.locator(".summary").text_content())

                await until(is_shown, "the bound pod on the page")
                await page.get_by_role("link", name="Pending").click()
                await page.get_by_role("button", name="waits").wait_for()
                return before, await page.locator(".status").text_content()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    before, status = browser.run(follow)

    assert before == "1 node, 8 cards, 8 free"
    assert status is not None
    assert status.endswith("live")


def test_a_report_of_a_live_cluster_is_written(cluster: Cluster, tmp_path: Path) -> None:
    _create(cluster, gpu_node("gpu-1", "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}))

    done = run_here("report", "--kubeconfig", cluster.control_plane.kubeconfig, "-o", tmp_path / "report.html")

    assert (done.code, done.output) == (0, "")
    assert (tmp_path / "report.html").stat().st_size > 50_000


def test_the_rights_of_the_deployment_are_enough(cluster: Cluster, deployed: Path) -> None:
    _create(cluster, gpu_node("gpu-1", "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}))
    found: list[tuple[Sources, list[str]]] = []

    def is_read() -> bool:
        # Until its role is in force, the API server refuses the lists.
        with suppress(click.ClickException), remarks_taken() as remarks:
            found.append((fixed_sources(Session(kubeconfig=deployed, needs_pods=False)), remarks))
        return bool(found) and not found[-1][1]

    wait_for(is_read, "all kinds and the policy to be read without a remark")

    assert [each.node.name for each in found[-1][0].view.snapshot().nodes] == ["gpu-1"]


def test_the_rights_of_the_deployment_are_to_read() -> None:
    rules = [rule for each in read("overlays/console/rbac.yaml") for rule in each.get("rules", ())]

    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list", "watch"}
    assert not any("secrets" in rule["resources"] for rule in rules)
