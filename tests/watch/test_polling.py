"""What is read at intervals survives internal errors."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.servers.fake_api import Answer, fake_api, json, refusal
from tests.support.servers.live import until
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.kube.release import Release
from webhook.watch.api_server import ApiServer, ClientConfig
from webhook.watch.polling import Polling, read_scheduler_evidence, read_webhook_configuration

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/name"
EVIDENCE = SchedulerEvidence(frozenset({"apps"}), "")


@pytest.mark.parametrize(
    ("path", "answer", "poll", "wanted"),
    [
        ("/version", json({"gitVersion": "v1.35.4"}), Polling.release, [Release(35, "v1.35.4")]),
        ("/apis", json({"groups": [{"name": "apps"}]}), Polling.scheduler_evidence, [None, EVIDENCE]),
        (CONFIGURATION, json({"a": 1}), lambda polling, take: polling.webhook_configuration("name", take), [{"a": 1}]),
    ],
    ids=["release", "signs of schedulers", "webhook configuration"],
)
def test_internal_error_is_reported_and_ends_nothing(
    tmp_path: Path,
    path: str,
    answer: Answer,
    poll: Callable[[Polling, Callable[[object], None]], Awaitable[None]],
    wanted: list[Any],
) -> None:
    faults: list[str] = []
    found: list[object] = []

    async def follow() -> None:
        async with fake_api(path, answer) as api:
            config = ClientConfig(api.kubeconfig(tmp_path))

            def connect() -> ApiServer:
                if not faults:
                    raise LookupError
                return config.connect()

            polling = Polling(connect, 0.0, lambda: faults.append("fault"))
            task = asyncio.ensure_future(poll(polling, found.append))
            await until(lambda: len(found) >= len(wanted))
            task.cancel()

    asyncio.run(follow())

    assert (faults, found[: len(wanted)]) == (["fault"], wanted)


def test_another_failure_is_logged_and_the_same_is_not(tmp_path: Path) -> None:
    found: list[object] = []

    async def follow() -> None:
        failures = [refusal(500, reason) for reason in ("first", "first", "second")]
        async with fake_api(CONFIGURATION, *failures, json({"a": 1}), refusal(500, "second")) as api:
            polling = Polling(ClientConfig(api.kubeconfig(tmp_path)).connect, 0.0)
            task = asyncio.ensure_future(polling.webhook_configuration("name", found.append))
            await until(lambda: len(logs) == 3)
            task.cancel()

    with capture_logs() as logs:
        asyncio.run(follow())

    assert [(each["event"], each["error"].rpartition(" ")[2]) for each in logs] == [
        ("the webhook configuration is not known", reason) for reason in ("first", "second", "second")
    ]


def test_user_controlled_objects_are_read_up_to_a_size_limit() -> None:
    """The configurations of Kueue and Volcano are read where their API groups are served."""
    bounds: dict[str, int] = {}

    class Server:
        async def get(self, path: str, _: object, *, most_bytes: int) -> dict[str, Any]:
            bounds[path] = most_bytes
            return {"groups": [{"name": "kueue.x-k8s.io"}, {"name": "scheduling.volcano.sh"}]}

    server: Any = Server()
    asyncio.run(read_scheduler_evidence(server))
    asyncio.run(read_webhook_configuration(server, "a/b"))

    assert bounds == {
        "/apis": 2 * 1024 * 1024,
        "/apis/coordination.k8s.io/v1/leases": 2 * 1024 * 1024,
        "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config": 64 * 1024,
        "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap": 64 * 1024,
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/a%2Fb": 3 * 1024 * 1024,
    }


@pytest.mark.parametrize(
    "groups", [(), ("kueue.x-k8s.io",), ("scheduling.volcano.sh",), ("apps", "scheduling.volcano.sh")]
)
def test_the_configuration_of_a_scheduler_is_read_only_where_its_group_is_served(groups: tuple[str, ...]) -> None:
    asked: list[str] = []

    class Server:
        async def get(self, path: str, *_: object, **__: object) -> dict[str, Any]:
            asked.append(path.rpartition("/")[2])
            return {"groups": [{"name": name} for name in groups]}

    server: Any = Server()
    asyncio.run(read_scheduler_evidence(server))
    configurations = {
        "kueue.x-k8s.io": "kueue-manager-config",
        "scheduling.volcano.sh": "volcano-scheduler-configmap",
    }
    assert asked == ["apis", "leases", *(configurations[each] for each in groups if each in configurations)]
