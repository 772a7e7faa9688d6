"""Options of `serve` that concern what it may answer, and whom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from webhook.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS = Settings(tls_dir=Path())


def prove_option(command: F) -> F:
    """Add `--prove-patches`."""
    option = click.option(
        "--prove-patches",
        type=click.IntRange(min=0),
        metavar="N",
        default=_DEFAULTS.prove_patches,
        show_default=True,
        help="Apply one patch in N to its pod before the answer is sent, and answer 500 if it is wrong; 0: none.",
    )
    return option(command)
