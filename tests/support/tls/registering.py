"""Registrations of certificates, and a Secret as an earlier one has left it."""

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from certs.cluster.client import connected, secret_of
from certs.cluster.register import Registration, register
from certs.inspection import Artifacts
from certs.registration import Target
from certs.secret import new_secret
from tests.support.servers.server import utc_now
from webhook.watch.api_server import ClientConfig


def register_in(
    kubeconfig: Path, wanted: Registration, now: datetime | None = None, *, dry_run: bool = False
) -> list[str]:
    """Register in the cluster of `kubeconfig` and return the steps."""

    async def steps() -> list[str]:
        async with connected(ClientConfig(kubeconfig), dry_run=dry_run) as cluster:
            return [step async for step in register(cluster, wanted, now or utc_now())]

    return asyncio.run(steps())


def put_secret(kubeconfig: Path, target: Target, artifacts: Artifacts) -> None:
    """Write the Secret as `certs register` does."""

    async def put() -> None:
        async with connected(ClientConfig(kubeconfig)) as cluster:
            await cluster.apply(secret_of(target), new_secret(target, replace(artifacts, ca_key=None), is_owned=False))

    asyncio.run(put())
