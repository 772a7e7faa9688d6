"""Fill a real API server with nodes, bound pods, and pods that are created and deleted, over several connections."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import click
import orjson
import uvloop

from tests.support.objects.clusters import cluster_documents
from webhook.watch.api_server import ClientConfig

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
_PATHS = {"Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes"}
_WRITERS = 32
_TOLD_EACH = 5000


@dataclass(frozen=True, slots=True)
class Churn:
    """Pods created and deleted in so many seconds, the last at this time of the clock (`time.time()`)."""

    created: int
    deleted: int
    seconds: float
    ended: float


def objects(kind: str, nodes: int, pods_per_node: int) -> Iterator[dict[str, Any]]:
    """The nodes or the pods of a cluster, as an API server takes them."""
    found = (document.content for document in cluster_documents(nodes, pods_per_node))
    for number, content in enumerate(each for each in found if each["kind"] == kind):
        if kind == "Pod":
            _fill_pod(content, number)
        yield content


def _fill_pod(content: dict[str, Any], number: int) -> None:
    content["metadata"]["labels"] |= {"pod-template-hash": f"hash-{number % 500}", "team": f"team-{number % 40}"}
    (main,) = content["spec"]["containers"]
    main["image"] = f"registry.example/app-{number % 200}:1"
    main["env"] = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)]
    main["resources"]["limits"] = main["resources"]["requests"]


def created(kubeconfig: Path, what: str, contents: Iterator[dict[str, Any]], deadline: float) -> int:
    """Return how many of `contents` were created by then (`time.monotonic()`); print progress to standard error."""
    return uvloop.run(_create(kubeconfig, what, contents, deadline))


def churned(kubeconfig: Path, nodes: int, seconds: float) -> Churn:
    """Pods created and deleted as fast as the API server takes it; of three that are created, two go again."""
    return uvloop.run(_churn(kubeconfig, nodes, seconds))


def _path(content: dict[str, Any]) -> str:
    kind = content["kind"]
    return f"/api/v1/namespaces/{content['metadata']['namespace']}/pods" if kind == "Pod" else _PATHS[kind]


async def _churn(kubeconfig: Path, nodes: int, seconds: float) -> Churn:
    created, deleted = 0, 0
    numbered = enumerate(cycle(objects("Pod", min(nodes, 100), 1)))
    began = time.monotonic()

    async def write(session: aiohttp.ClientSession) -> None:
        nonlocal created, deleted
        while time.monotonic() < began + seconds:
            number, pod = next(numbered)
            name = f"churn-{number}"
            body = pod | {"metadata": pod["metadata"] | {"name": name}}
            await _send(session, "POST", _path(body), body)
            created += 1
            if number % 3:
                await _send(session, "DELETE", f"{_path(body)}/{name}", {"gracePeriodSeconds": 0})
                deleted += 1

    async with connected(kubeconfig) as session:
        await asyncio.gather(*(write(session) for _ in range(_WRITERS)))
    return Churn(created, deleted, time.monotonic() - began, time.time())


async def _create(kubeconfig: Path, what: str, contents: Iterator[dict[str, Any]], deadline: float) -> int:
    made, began = 0, time.monotonic()

    async def write(session: aiohttp.ClientSession) -> None:
        nonlocal made
        while time.monotonic() < deadline and (content := next(contents, None)) is not None:
            await _send(session, "POST", _path(content), content)
            made += 1
            if made % _TOLD_EACH == 0:
                click.echo(f"{made} {what}, {made / (time.monotonic() - began):.0f} a second", err=True)

    async with connected(kubeconfig) as session:
        await asyncio.gather(*(write(session) for _ in range(_WRITERS)))
    return made


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with the API server of `kubeconfig`, its certificates presented."""
    configuration, _ = await ClientConfig(kubeconfig).read()
    trust = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    trust.load_cert_chain(configuration.cert_file, configuration.key_file)
    connector = aiohttp.TCPConnector(limit=_WRITERS, ssl=trust)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(configuration.host, connector=connector, headers=headers) as session:
        yield session


async def _send(session: aiohttp.ClientSession, method: str, path: str, body: dict[str, Any]) -> None:
    async with session.request(method, path, data=orjson.dumps(body)) as response:
        text = await response.text()
        if response.status >= 400:
            raise click.ClickException(f"{method} {path}: {response.status} {text}")
