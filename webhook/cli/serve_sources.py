"""Options of `serve` that name what it decides by, beside the policy."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from certs.registration import Target
from webhook.cli.files import FILE, STANDARD_INPUT, read_text
from webhook.placement.config.loader import parse_profiles
from webhook.placement.profile import Profile

F = TypeVar("F", bound=Callable[..., Any])

_SCHEDULER_CONFIG = "--scheduler-config"


def source_options(command: F) -> F:
    """Add `--scheduler-config`, `--policy-source` and `--webhook-configuration`."""
    command = click.option(
        "--webhook-configuration",
        default=Target().configuration,
        show_default=True,
        metavar="NAME",
        help="The MutatingWebhookConfiguration by whose selectors missed pods are counted.",
    )(command)
    command = click.option(
        "--policy-source",
        type=click.Choice(["file", "crd"]),
        default="file",
        show_default=True,
        help="crd: the PlacementPolicy objects of the live cluster, each for its namespaces; --policy is "
        "for the others.",
    )(command)
    return click.option(
        _SCHEDULER_CONFIG,
        type=FILE,
        metavar="FILE",
        help="The KubeSchedulerConfiguration of the cluster's kube-scheduler. The profile of a pod's schedulerName "
        "predicts its node. Read once, at start.",
    )(command)


def configured_profiles(path: str | None) -> Mapping[str, Profile]:
    """Return the profiles of a KubeSchedulerConfiguration file by schedulerName; none without a file.

    Raises:
        InvalidInput: the file cannot be read or is not one valid KubeSchedulerConfiguration.
    """
    if path is None:
        return {}
    place = "<stdin>" if path == STANDARD_INPUT else path
    return parse_profiles(read_text(path, _SCHEDULER_CONFIG), place)
