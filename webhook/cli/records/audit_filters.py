"""The options of `audit` that select records."""

from datetime import UTC, datetime
from typing import Any, get_args

import click

from webhook.audit.record import Outcome
from webhook.audit.selection import Selection, parse_moment
from webhook.cli.inputs.files import options
from webhook.placement.framework.result import PlacementVerdict

filters = options(
    click.option("-n", "--namespace", "namespaces", multiple=True, help="Of this namespace; may be repeated."),
    click.option("--type", "workload_types", multiple=True, help="Of this workload type; may be repeated."),
    click.option(
        "--outcome",
        "outcomes",
        multiple=True,
        type=click.Choice(get_args(Outcome), case_sensitive=False),
        help="With this outcome; may be repeated.",
    ),
    click.option("--user", "users", multiple=True, help="Of this user, with * and ? for many; may be repeated."),
    click.option(
        "--verdict",
        "verdicts",
        multiple=True,
        type=click.Choice(get_args(PlacementVerdict), case_sensitive=False),
        help="With this verdict of the placement check; may be repeated.",
    ),
    click.option("--policy", "policies", multiple=True, help="By this policy: NAME or NAME@REVISION; repeatable."),
    click.option("--pod", default="", help="Of this pod: NAME or NAMESPACE/NAME, with * and ? for many."),
    click.option("--since", help="At or after this time: 2026-05-01T08:00:00Z, or an age: 45m, 12h, 1d12h."),
    click.option("--until", help="Before this time, in the same form."),
)


def selection_of(*, since: str | None, until: str | None, **chosen: Any) -> Selection:
    """Return the selection by the values of these options.

    Raises:
        InvalidInput: a time cannot be read.
    """
    now = datetime.now(UTC)
    return Selection(
        since=parse_moment(since, now, "--since") if since else None,
        until=parse_moment(until, now, "--until") if until else None,
        **chosen,
    )
