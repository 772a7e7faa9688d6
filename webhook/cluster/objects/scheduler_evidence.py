"""Signs that a scheduler runs in a cluster: API groups and Leases. Bound pods are a third sign, in the snapshot.

A Lease is a sign while its holder renews it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.objects.lease import is_expired, newest_write
from webhook.documents.documents import field
from webhook.documents.parts import items_at


@dataclass(frozen=True, slots=True)
class SchedulerEvidence:
    """The API groups that a cluster serves, and a text with a line for each name and holder of its renewed Leases.

    `pods_ready_timeout` is the time, such as `5m`, after which Kueue evicts an admitted workload unless all of its pods
    are ready. It is empty if Kueue does not evict it, or if that is not known. `volcano` is None if it is not known.
    """

    groups: frozenset[str]
    leases: str
    pods_ready_timeout: str = ""
    volcano: VolcanoConfiguration | None = None

    @classmethod
    def of(cls, groups: Mapping[str, Any], leases: Mapping[str, Any], now: datetime) -> "SchedulerEvidence":
        """Return the evidence in an APIGroupList and a LeaseList; `now` is used if Leases show no server time."""
        items = items_at(leases, "items")
        now = newest_write(items) or now
        names = (field(group, "name") for group in items_at(groups, "groups"))
        texts = {
            text
            for lease in items
            if not is_expired(lease, now)
            for text in (field(lease, "metadata", "name"), field(lease, "spec", "holderIdentity"))
            if isinstance(text, str)
        }
        return cls(frozenset(name for name in names if isinstance(name, str)), "\n".join(sorted(texts)))

    def shows(self, scheduler: str, api_groups: Collection[str]) -> bool:
        """Return whether one of `api_groups` is served, or the name or holder of a renewed Lease contains `scheduler`.

        `api_groups` are those of the CRDs of `scheduler`.

        The holder is the name of a process, such as `hami-scheduler-7d4b9_3f2a`.
        """
        return not self.groups.isdisjoint(api_groups) or scheduler in self.leases
