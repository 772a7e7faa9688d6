"""Report where the certificate life stands, and what the controller does next. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from certs.rotation.bundles import bundles_of
from certs.rotation.plan import Action, plan
from certs.rotation.secret import artifacts_in, is_owned, requested_rotation
from certs.rotation.state import Observed, Rules, read_ring

JsonObject = dict[str, Any]

_STATES = {
    Action.KEEP: "one CA is trusted",
    Action.ISSUE_SERVING: "one CA is trusted, and a new server certificate is to be issued",
    Action.ADD_NEXT_CA: "a CA is to be added",
    Action.SWITCH_TO_NEXT_CA: "the next CA is added, and replicas serve certificates of the old one",
    Action.DROP_OLD_CA: "certificates of the next CA are served, and the old one is still trusted",
}


def rotation_of(secret: JsonObject | None, configurations: Iterable[JsonObject], now: datetime) -> JsonObject | None:
    """Return the state of a Secret of the controller as one JSON object; None for a Secret of another owner.

    `waitSeconds` is the longest time that the controller waits before the next action, with its default settings. It
    waits less if it has observed the objects for some time.
    """
    if secret is None or not is_owned(secret):
        return None
    artifacts, requested = artifacts_in(secret), requested_rotation(secret)
    rules = Rules(read_ring(artifacts, now).pair.names)
    step = plan(Observed(artifacts, bundles_of(configurations), requested=requested), rules, now)
    return {
        "state": _STATES[step.action],
        "next": str(step.action),
        "reasons": list(step.reasons),
        "waitSeconds": int(step.wait.total_seconds()),
        "requested": str(requested) if requested else None,
    }


def rotation_line(rotation: JsonObject) -> str:
    """Return the report as one line."""
    wait = "" if rotation["next"] == Action.KEEP else f" within {rotation['waitSeconds']} s"
    until = f", the next renewal in {rotation['waitSeconds'] // 86400} days" if rotation["next"] == Action.KEEP else ""
    return f"{rotation['state']}; next {rotation['next']}{wait}: {'; '.join(rotation['reasons'])}{until}"
