"""Observations of pods, the Events that become of them, and their form in core/v1.

core/v1 has a count and a lastTimestamp: `kubectl describe` prints "(x12 over 3m)", and `kubectl get events
--sort-by=.lastTimestamp` sorts them, which it does not with events.k8s.io/v1.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Self

from webhook.events.backlog import Item
from webhook.events.subject import ObjectReference, Subject
from webhook.kube.names import DEFAULT_NAMESPACE

COMPONENT = "placement-webhook"
_LONGEST_NAME = 253


@dataclass(slots=True, eq=False)
class Observation(Item):
    """Pods of one owner with equal reports."""

    subject: Subject
    lookups: int = field(default=0, kw_only=True)

    @property
    def namespace(self) -> str:
        """Return the namespace of the pods."""
        return self.subject.namespace

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the key of equal observations."""
        return self.subject.identity, self.report.reason, self.report.topic

    def absorb(self, later: Self) -> None:
        """Count the pods of `later`, too, and keep its note."""
        Item.absorb(self, later)  # super() would look for the class without slots
        self.subject = self.subject.common_with(later.subject)


@dataclass(slots=True, eq=False)
class PendingEvent(Item):
    """An Event on `target` that counts `count` reports more; `source` is that of its subject."""

    target: ObjectReference
    source: str

    @property
    def namespace(self) -> str:
        """Return the namespace of the Event. The API server takes one on a cluster-scoped object in `default` alone."""
        return self.target.namespace or DEFAULT_NAMESPACE

    @property
    def key(self) -> str:
        """Return the name of the Event: equal in every replica, so that replicas count in one Event."""
        target, report = self.target, self.report
        text = f"{target.uid}\0{target.name}\0{report.reason}\0{report.topic}"
        suffix = f".{blake2b(text.encode(), digest_size=8).hexdigest()}"
        return target.name[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix

    @property
    def happens_once(self) -> bool:
        """Return whether there is nothing to count: a pod is admitted once, in rounds that replicas share."""
        return self.report.is_on_pod and self.target.kind == "Pod"

    def manifest(self, replica: str) -> dict[str, Any]:
        """Return the new Event, reported by `replica`."""
        target = self.target
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.key, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": target.api_version,
                "kind": target.kind,
                "namespace": target.namespace,
                "name": target.name,
                "uid": target.uid,
            },
            "type": "Warning",
            "reason": self.report.reason,
            "message": self.report.note,
            "action": "Admit",
            "count": self.count,
            "firstTimestamp": _rfc3339(self.first_at),
            "lastTimestamp": _rfc3339(self.last_at),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": replica,
        }

    def patch(self, count: int, resource_version: str) -> dict[str, Any]:
        """Return the merge patch of the Event that has `count` at `resource_version`."""
        return {
            "metadata": {"resourceVersion": resource_version},
            "count": count + self.count,
            "lastTimestamp": _rfc3339(self.last_at),
            "message": self.report.note,
        }


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
