"""`placement-webhook certs`: own certificates, their registration in a cluster, and how they stand."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from certs.inspection import CA_KEY, Artifacts, inspect
from certs.names import ServerNames, server_names
from certs.pki import KeyPair, issue_ca, issue_server
from certs.plan import Action, Plan, plan
from certs.store import directory as store
from certs.store.cluster import ClusterError
from webhook.kube.field import FieldError, InvalidInput

F = TypeVar("F", bound=Callable[..., Any])

_DIRECTORY = click.Path(path_type=Path)


class _Refused(click.ClickException):
    """Bad input, told in one go."""

    exit_code = 2


class _Failed(click.ClickException):
    """Something that is not the caller's doing."""

    exit_code = 1


class _SeveralValues(click.Command):
    """A command whose `--dns` and `--ip` take one or more values each time: `--dns a b --dns c,d`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        flag: str | None = None
        for index, arg in enumerate(args):
            if arg.startswith("-"):
                flag = arg if arg in ("--dns", "--ip") else None
            elif flag and args[index - 1] != flag:
                spread.append(flag)
            spread.append(arg)
        return super().parse_args(ctx, spread)


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise _Refused(str(error)) from error
    except ClusterError as error:
        raise (_Refused if 400 <= error.code < 500 else _Failed)(str(error)) from error


@click.group()
def certs() -> None:
    """Certificates of the webhook: an own CA, a server certificate, and their registration in a cluster."""


@certs.command(cls=_SeveralValues)
@click.option(
    "--dir", "directory", type=_DIRECTORY, required=True, help="Where ca.crt, ca.key, tls.crt, tls.key are kept."
)
@click.option("--dns", "dns_names", metavar="NAME…", multiple=True, help="DNS names that clients will ask for.")
@click.option("--ip", "ip_addresses", metavar="IP…", multiple=True, help="IP addresses that clients will ask for.")
@click.option("--force", is_flag=True, help="Issue a new CA and certificate whatever is in the directory.")
@click.option("--discard-ca-key", is_flag=True, help="Keep no ca.key: nobody can sign with this CA again, nor renew.")
def issue(
    directory: Path, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], force: bool, discard_ca_key: bool
) -> None:
    """Issue a CA and a server certificate into a directory, or renew the latter there.

    Run again, it changes nothing as long as everything is in order and for the same names. Otherwise it renews the
    server certificate with the same CA, so that what trusts the CA need not change. Keys are 0600.
    """
    now = datetime.now(UTC)
    with _told_plainly():
        names = _names(dns_names, ip_addresses)
        found = inspect(store.read_if_any(directory), now)
        todo = plan(found, now, names=names, replace=force)
        if todo.action is Action.REFUSE:
            raise InvalidInput(_remedied(directory, todo))
        issued = _issued(todo, found.artifacts, names, now)
        discard = (CA_KEY,) if discard_ca_key else ()
        if discard_ca_key:
            issued = Artifacts(issued.ca_certificate, None, issued.certificate, issued.key)
        store.write(directory, issued, remove=discard)
        current = inspect(store.read(directory), now)
    click.echo(f"{_PAST[todo.action]}: {'; '.join(todo.reasons)}")
    for name in sorted(path.name for path in directory.iterdir() if path.suffix in (".crt", ".key")):
        click.echo(f"  {directory / name}")
    if current.server:
        click.echo(f"valid for {current.names} until {current.server.not_valid_after_utc:%Y-%m-%d}")


_PAST = {Action.ISSUE: "issued", Action.RENEW: "renewed", Action.KEEP: "kept"}


def _names(dns_names: tuple[str, ...], ip_addresses: tuple[str, ...]) -> ServerNames:
    def spread(values: tuple[str, ...]) -> list[str]:
        return [each.strip() for value in values for each in value.split(",")]

    return server_names(spread(dns_names), spread(ip_addresses), dns_path="--dns", ip_path="--ip")


def _remedied(directory: Path, todo: Plan) -> list[FieldError]:
    remedy = f"--force replaces everything in {directory}, after which `certs register` has to be run again"
    return [
        FieldError(f"{directory}: {error.path}", error.reason, error.value, f"{error.detail}; {remedy}")
        for error in todo.obstacles
    ]


def _issued(todo: Plan, held: Artifacts, names: ServerNames, now: datetime) -> Artifacts:
    if todo.action is Action.KEEP:
        return Artifacts()
    if todo.action is Action.RENEW:
        ca = KeyPair(held.ca_certificate or b"", held.ca_key or b"")
    else:
        ca = issue_ca(now=now)
    server = issue_server(ca, dns_names=names.dns_names, ip_addresses=map(str, names.ip_addresses), now=now)
    if todo.action is Action.RENEW:
        return Artifacts(certificate=server.certificate, key=server.key)
    return Artifacts(ca.certificate, ca.key, server.certificate, server.key)
