"""Options of `serve` that concern what it may answer, and whom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from webhook.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS = Settings(tls_dir=Path())


def _check_client_names(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if names and ctx.params.get("client_ca") is None:
        raise click.UsageError("--client-name needs --client-ca: without a CA, no name of a client is verified.")
    return names


def security_options(command: F) -> F:
    """Add the options that say who may call, and how answers are proven."""
    file = click.Path(path_type=Path)
    for option in (
        click.option(
            "--prove-patches",
            type=click.IntRange(min=0),
            metavar="N",
            default=_DEFAULTS.prove_patches,
            show_default=True,
            help="Apply one patch in N to its pod before the answer is sent, and answer 500 if it is wrong; 0: none.",
        ),
        click.option(
            "--admin-token-file",
            type=file,
            metavar="FILE",
            help="Require the bearer token in this file on the admin port, except for /healthz and /readyz.",
        ),
        click.option(
            "--client-name",
            "client_names",
            multiple=True,
            callback=_check_client_names,
            metavar="PATTERN",
            help="Take only client certificates with a CN or subject alternative name like this, such as "
            "kube-apiserver-*; may be repeated. Needs --client-ca.",
        ),
        click.option(
            "--client-ca",
            type=file,
            is_eager=True,
            metavar="FILE",
            help="Require client certificates of the CAs in this file on the webhook port.  [default: none required]",
        ),
    ):
        command = option(command)
    return command


def log_options(command: F) -> F:
    """Add the format and the level of the log."""
    level = click.Choice(["debug", "info", "warning", "error"])
    return click.option(
        "--log-format",
        type=click.Choice(["auto", "text", "json"]),
        default="auto",
        show_default=True,
        help="auto: text on a terminal, else JSON.",
    )(click.option("--log-level", type=level, default="info", show_default=True)(command))
