"""The release of a cluster: read from the real API server, and followed while servers answer otherwise."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.servers.fake_api import Answer, fake_api, json
from tests.support.servers.live import following_in_thread, until
from webhook.documents.field import InvalidInput
from webhook.kube.release import Release
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig
from webhook.watch.polling import Polling, read_release


def version(text: str) -> Answer:
    return json({"major": "1", "minor": "34", "gitVersion": text})


def test_live_view_has_the_release_of_the_api_server(cluster: Cluster) -> None:
    printed = cluster.client.request("GET", "/version").object["gitVersion"]

    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        wait_for(lambda: live.snapshot().release.version or None, "the release")
        assert live.snapshot().release == Release.of(printed, "")


def polled(folder: Path, answers: list[Answer], enough: Callable[[list[Release]], bool]) -> list[Release]:
    """Return the releases that a server with these answers gives, until there are `enough`."""
    found: list[Release] = []

    async def poll() -> None:
        async with fake_api("/version", *answers) as api:
            config = ClientConfig(api.kubeconfig(folder))
            task = asyncio.create_task(Polling(config.connect, 0.0).release(found.append))
            await until(lambda: enough(found))
            task.cancel()

    asyncio.run(poll())
    return found


def test_an_upgrade_is_seen_and_a_failure_keeps_what_is_known(tmp_path: Path) -> None:
    refused = json({"kind": "Status", "message": "later"}, status=503)
    answers = [version("v1.34.3-eks-1"), refused, version("not a version"), version("v1.35.1-gke.100")]

    with capture_logs() as logs:
        found = polled(tmp_path, answers, lambda found: len(found) == 2)

    assert found == [Release(34, "v1.34.3-eks-1"), Release(35, "v1.35.1-gke.100")]
    assert [(each["log_level"], each["event"]) for each in logs[:3]] == [
        ("info", "release of the cluster"),
        ("warning", "the release of the cluster cannot be read"),
        ("info", "release of the cluster"),
    ]
    assert logs[1]["used"] == "1.34"


def test_a_release_that_is_not_modelled_is_noted_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        polled(tmp_path, [version("v1.38.0")] * 3, lambda found: len(found) == 3)

    noted = "release v1.38.0: plugins and messages are those of kube-scheduler 1.37, the newest that is modelled"
    assert [each["note"] for each in logs if "note" in each] == [noted]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(json({"gitVersion": 1.36}), InvalidInput, id="another type"),
        pytest.param(json({}), InvalidInput, id="without a version"),
        pytest.param(json({"gitVersion": "v1.36." + "0" * 100_000}), ApiServerError, id="too long"),
    ],
)
def test_a_hostile_answer_is_an_error(tmp_path: Path, answer: Answer, error: type[Exception]) -> None:
    async def ask() -> None:
        async with fake_api("/version", answer) as api, ClientConfig(api.kubeconfig(tmp_path)).connect() as server:
            await read_release(server)

    with pytest.raises(error):
        asyncio.run(ask())
