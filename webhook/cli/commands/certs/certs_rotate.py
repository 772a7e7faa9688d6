"""`placement-webhook certs rotate`: request a rotation from the certs controller, and show its progress."""

import asyncio
import time
from datetime import UTC, datetime

import click

from certs.cluster.client import Cluster, configuration_named, secret_of
from certs.cluster.status import rotation_line, rotation_of
from certs.inspection import read_key_material
from certs.plan import Request
from certs.registration import Target
from certs.secret import artifacts_in, is_owned, request_patch, requested_rotation
from webhook.cli.commands.certs.certs_options import cluster_options, run_in
from webhook.cli.output.terminal import echo
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid, required
from webhook.watch.api_server import ClientConfig

_POLL_SECONDS = 0.5
_ATTEMPTS = 5


@click.command()
@cluster_options
@click.option("--ca", "of_ca", is_flag=True, help="Rotate the CA, and with it the server certificate.")
@click.option(
    "--timeout-seconds",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    help="Wait for this long until the new certificate is in the Secret; 0: do not wait.",
)
def rotate(source: ClientConfig, target: Target, of_ca: bool, timeout_seconds: float) -> None:
    """Request a new server certificate, or with --ca a new CA, and show the progress.

    The certs controller carries it out. API servers trust both CAs until no replica serves the old certificate.

    \b
    Example:
      placement-webhook certs rotate --ca --kubeconfig ~/.kube/config
    """
    wanted = Request.CA if of_ca else Request.SERVING

    async def work(cluster: Cluster) -> None:
        before = await _requested(cluster, target, wanted)
        echo(f"{target.secret_place}: rotation requested: {wanted}")
        if timeout_seconds and not await _is_shown(cluster, target, wanted, before, timeout_seconds):
            detail = "is not done in time; `placement-webhook certs status` shows the state, and the log of the "
            raise InvalidInput([invalid(target.secret_place, str(wanted), f"{detail}certs controller the reason")])

    run_in(source, work)


async def _requested(cluster: Cluster, target: Target, wanted: Request) -> JsonObject:
    """Write the request; return the Secret as it was before."""
    for _ in range(_ATTEMPTS):
        secret = await cluster.read(secret_of(target))
        if secret is None or not is_owned(secret):
            detail = "a Secret of the certs controller; without one, `placement-webhook certs register` renews"
            raise InvalidInput([required(target.secret_place, detail)])
        if await cluster.change(secret_of(target), request_patch(secret, wanted)):
            return secret
    raise InvalidInput([required(target.secret_place, "another client keeps changing it; try again")])


async def _is_shown(
    cluster: Cluster, target: Target, wanted: Request, before: JsonObject, timeout_seconds: float
) -> bool:
    """Print each state until the rotation is done; return false after the timeout."""
    deadline, shown = time.monotonic() + timeout_seconds, ""
    while True:
        now = datetime.now(UTC)
        secret = await cluster.read(secret_of(target))
        found = await cluster.read(configuration_named(target.configuration))
        rotation = rotation_of(secret, [found] if found else [], now)
        line = rotation_line(rotation) if rotation else "the Secret is gone, or has another owner"
        if line != shown:
            echo(line)
            shown = line
        if secret is not None and _is_done(secret, before, wanted, now):
            server = read_key_material(artifacts_in(secret), now).pair.server
            echo(f"tls.crt is renewed, valid until {server.not_valid_after_utc:%Y-%m-%d}" if server else "")
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)


def _is_done(secret: JsonObject, before: JsonObject, wanted: Request, now: datetime) -> bool:
    """Return whether the Secret has a new usable pair and, for a rotation of the CA, one of a new CA."""
    held, was = artifacts_in(secret), artifacts_in(before)
    keys = read_key_material(held, now)
    if requested_rotation(secret) is not None or keys.issuer is None or held.certificate == was.certificate:
        return False
    return wanted is Request.SERVING or (keys.issuer == keys.signer and held.ca_key != was.ca_key)
