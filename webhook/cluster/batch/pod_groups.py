"""The pod groups of kube-scheduler: its own and those of the Coscheduling plugin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields


class PodGroup(NamedTuple):
    """A PodGroup. `members` is the number of pods from which it starts; 0 if it has none.

    Source: sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1/types.go, PodGroupSpec;
    k8s.io/api/scheduling/v1beta1/types.go, GangSchedulingPolicy
    """

    namespace: str
    name: str
    members: int

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts of `content`, a raw API object."""
        of_plugin = fields.count(content, "spec", "minMember")
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            of_plugin or fields.count(content, "spec", "schedulingPolicy", "gang", "minCount"),
        )


@dataclass(frozen=True, slots=True)
class PodGroups:
    """The pod groups of the Coscheduling plugin and of kube-scheduler itself, by namespace and name.

    None: they are not known.
    """

    coscheduling: Mapping[tuple[str, str], PodGroup] | None = None
    native: Mapping[tuple[str, str], PodGroup] | None = None


NO_POD_GROUPS = PodGroups()
