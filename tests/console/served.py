"""A console of a cluster file, served in the event loop of the browser."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from placement_console.application import all_endpoints
from placement_console.page import Asked, fixed_sources
from placement_console.serving import listening, sources_of
from webhook.cli.inputs.session import Session
from webhook.runtime.settings import Address

SAMPLE = Path(__file__).parents[2] / "webhook" / "cli" / "sample" / "cluster.yaml"


@asynccontextmanager
async def console_of(
    cluster: Path = SAMPLE, audit: Sequence[Path] = (), policies: Sequence[Path] = ()
) -> AsyncIterator[str]:
    """Serve the console of a cluster file, and yield its address."""
    session = Session(cluster=str(cluster), policies=tuple(policies), needs_pods=False)
    sources, _ = sources_of(session, tuple(map(str, audit)))
    async with listening(sources, Address("127.0.0.1", 0)) as address:
        yield f"http://{address}"


def asked(
    path: str,
    body: str = "",
    audit: tuple[Path, ...] = (),
    cluster: Path = SAMPLE,
    policies: tuple[Path, ...] = (),
    **query: str,
) -> Any:
    """Return the answer of an endpoint, of the sample cluster unless there is another."""
    session = Session(cluster=str(cluster), policies=policies, needs_pods=False)
    sources = fixed_sources(session, tuple(map(str, audit)))
    (endpoint,) = (each for each in all_endpoints(sources) if each.path == path)
    return endpoint.answer(Asked(sources.view.snapshot(), query, body.encode()))
