"""The age of a Lease of a leader election or of an API server."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from webhook.documents.documents import field
from webhook.documents.parts import items_at

_SYSTEM = "kube-system"
# The clock of the holder can differ, and a scheduler that is restarted or moved does not renew its Lease meanwhile.
_SLACK = timedelta(minutes=5)


def time_of(text: object) -> datetime | None:
    """Return a time with its zone, or None if `text` is not a time."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def writes_of(lease: Any, *fields: str) -> list[datetime]:
    """Return the times at which clients that own all these fields of `spec` wrote them, by the API server's clock.

    Source: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfieldsupdater.go, Update
    """
    return [
        time
        for each in items_at(lease, "metadata", "managedFields")
        if all(field(each, "fieldsV1", "f:spec", f"f:{name}") is not None for name in fields)
        and (time := time_of(field(each, "time"))) is not None
    ]


def last_renewal(lease: Any) -> datetime | None:
    """Return the time at which the holder last renewed `lease`, or None if it is not known.

    The time is by the API server's clock if the holder has written the Lease since it was created. Otherwise it is
    `renewTime`, which is by the clock of the holder.
    """
    created = time_of(field(lease, "metadata", "creationTimestamp"))
    written = [time for time in writes_of(lease, "renewTime", "holderIdentity") if created and time > created]
    return max(written) if written else time_of(field(lease, "spec", "renewTime"))


def is_expired(lease: Any, now: datetime) -> bool:
    """Return whether the holder has stopped renewing `lease`; false if its age is not known."""
    seconds, renewed = field(lease, "spec", "leaseDurationSeconds"), last_renewal(lease)
    if renewed is None or type(seconds) is not int:
        return False
    return (now - renewed).total_seconds() > seconds + _SLACK.total_seconds()


def newest_write(leases: Iterable[Any]) -> datetime | None:
    """Return the time of the newest write to a Lease of kube-system, which is about the current time of the API server.

    API servers renew a Lease there every ten seconds, and users cannot write there. The result is None without a Lease.
    """
    own = (each for each in leases if field(each, "metadata", "namespace") == _SYSTEM)
    return max((time for each in own for time in writes_of(each, "renewTime")), default=None)
