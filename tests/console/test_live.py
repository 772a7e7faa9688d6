"""The console of a real API server: its own rights are enough, and pods appear on the page as they come."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.console.browser import TestBrowser, until
from tests.console.example_cluster import gpu_node, pod
from tests.controlplane.cluster import Cluster
from tests.support.command import run_here
from webhook.cli.console.serving import listening, sources_of
from webhook.cli.inputs.session import Session
from webhook.runtime.settings import Address


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
