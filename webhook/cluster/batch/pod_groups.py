"""The pod groups of kube-scheduler: its own and those of the Coscheduling plugin."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields


class PodGroup(NamedTuple):
    """A PodGroup that is looked up by its name alone."""

    namespace: str
    name: str

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts of `content`, a raw API object."""
        return cls(fields.text(content, "metadata", "namespace"), fields.text(content, "metadata", "name"))


@dataclass(frozen=True, slots=True)
class PodGroups:
    """The pod groups of the Coscheduling plugin and of kube-scheduler itself; None: they are not known."""

    coscheduling: frozenset[PodGroup] | None = None
    native: frozenset[PodGroup] | None = None

    @classmethod
    def of(cls, coscheduling: Iterable[PodGroup] | None, native: Iterable[PodGroup] | None) -> "PodGroups":
        """Return the groups of these lists; None: they are not known."""
        return cls(*(None if each is None else frozenset(each) for each in (coscheduling, native)))


NO_POD_GROUPS = PodGroups()
