"""The client of the objects: what a rejected request means."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from certs.cluster.client import Cluster, connected, secret_of
from certs.registration import Target
from tests.support.servers.fake_configuration_api import fake_api
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

T = TypeVar("T")

TARGET = Target("a/b", "c/d")
PATCH = {"metadata": {"resourceVersion": "1"}}


def answered(status: int, folder: Path, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Return the result of `work` in a cluster that rejects each request with this status."""

    async def run(kubeconfig: Path) -> T:
        async with connected(ClientConfig(kubeconfig)) as cluster:
            return await work(cluster)

    with fake_api() as api:
        api.refuses = status
        return asyncio.run(run(api.kubeconfig(folder)))


def test_an_object_that_does_not_exist_is_none(tmp_path: Path) -> None:
    assert answered(404, tmp_path, lambda cluster: cluster.read(secret_of(TARGET))) is None


@pytest.mark.parametrize("status", [404, 409])
def test_a_change_of_an_object_that_is_deleted_or_changed_since_is_not_made(tmp_path: Path, status: int) -> None:
    assert answered(status, tmp_path, lambda cluster: cluster.change(secret_of(TARGET), PATCH)) is False


@pytest.mark.parametrize(
    ("status", "method"), [(403, "read"), (409, "read"), (403, "change"), (404, "apply"), (409, "apply")]
)
def test_another_rejection_is_an_error_with_the_path_of_the_object(tmp_path: Path, status: int, method: str) -> None:
    async def work(cluster: Cluster) -> None:
        if method == "read":
            await cluster.read(secret_of(TARGET))
        elif method == "change":
            await cluster.change(secret_of(TARGET), PATCH)
        else:
            await cluster.apply(secret_of(TARGET), PATCH)

    path = "/api/v1/namespaces/a%2Fb/secrets/c%2Fd"
    with pytest.raises(ApiServerError, match=f": {status} because Refused$") as refused:
        answered(status, tmp_path, work)
    assert f" {path}: " in str(refused.value)
    assert refused.value.code == status


@pytest.mark.parametrize("status", [429, 503])
def test_a_read_that_a_busy_api_server_rejects_is_asked_once_more_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("certs.cluster.client.asyncio.sleep", note)

    async def run(kubeconfig: Path) -> None:
        async with connected(ClientConfig(kubeconfig)) as cluster:
            assert await cluster.read(secret_of(TARGET)) is None

    with fake_api() as api:
        api.refuses_once = status
        asyncio.run(run(api.kubeconfig(tmp_path)))
    assert pauses == [1.0]
