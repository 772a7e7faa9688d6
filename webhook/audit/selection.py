"""Select audit records by the options of a command, or by pod."""

import fnmatch
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from webhook.audit.record import AuditRecord
from webhook.documents.field import InvalidInput, invalid


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter on records. An empty field selects all."""

    users: tuple[str, ...] = ()
    """Names of users, with `*` and `?`."""
    verdicts: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    """`NAME`, or `NAME@REVISION` or its beginning."""

    def matches(self, record: AuditRecord) -> bool:
        """Return whether the record is selected."""
        return (
            (not self.users or any(fnmatch.fnmatchcase(record.user or "", each) for each in self.users))
            and (not self.verdicts or (record.placement is not None and record.placement.verdict in self.verdicts))
            and (not self.policies or any(_has_policy(record, each) for each in self.policies))
        )


# The suffix that the API server appends to the first 58 characters of a generateName.
# Source: k8s.io/apiserver/pkg/storage/names/generate.go, k8s.io/apimachinery/pkg/util/rand/rand.go
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_LONGEST_BASE = 58


def _has_policy(record: AuditRecord, wanted: str) -> bool:
    name, _, revision = wanted.partition("@")
    found = record.policy
    return found is not None and found.name == name and found.revision.startswith(revision)


def is_of_pod(record: AuditRecord, pod: str) -> bool:
    """Return whether the record can be about `pod`, in the form `NAMESPACE/NAME`."""
    namespace, _, name = pod.partition("/")
    if record.namespace != namespace:
        return False
    # At admission the name was not generated yet. A pod with a matching generated name may be the one.
    base = record.name[:_LONGEST_BASE]
    is_generated = record.name.endswith("-") and name.startswith(base) and _GENERATED.fullmatch(name[len(base) :])
    return name == record.name or bool(is_generated)


_DURATION = re.compile(r"(?=.)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_moment(text: str, now: datetime, place: str) -> datetime:
    """Return the time in `text`: RFC 3339 (UTC if it has no zone), or a duration before `now`, such as `1d12h`.

    Raises:
        InvalidInput: `text` is neither. `place` names the option in the message.
    """
    try:
        if duration := _DURATION.fullmatch(text):
            days, hours, minutes, seconds = (int(part or 0) for part in duration.groups())
            return now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        point = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        remedy = "must be a time such as 2026-05-01T08:00:00Z, or how long ago, such as 45m, 12h or 1d12h"
        raise InvalidInput([invalid(place, text, remedy)]) from error
    return point if point.tzinfo else point.replace(tzinfo=UTC)
