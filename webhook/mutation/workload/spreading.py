"""Read the spreading of a pod from its annotation and its workload type, and find its replica group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.mutation.replica_group import ReplicaGroup, replica_group
from webhook.mutation.workload.annotations import Annotations
from webhook.policy.keys import NO_TOPOLOGY, Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.schedulers import BinPacking, Spread
from webhook.policy.spec.workloads import WorkloadType


@dataclass(frozen=True, slots=True)
class Spreading:
    """The replicas in `group` are spread over `topology_key`. `is_requested`: an annotation asks for it."""

    topology_key: str
    group: ReplicaGroup
    settings: Spread
    is_requested: bool

    def is_undone_by(self, packing: BinPacking) -> bool:
        """Return whether the packing hint prefers the domains that the spreading avoids.

        A required spreading always takes effect, so the hint then only chooses among the other domains.
        """
        return self.settings.mode == "preferred" and packing.topology_key == self.topology_key


def read_spreading(
    annotations: Annotations, workload_type: WorkloadType, pod: Mapping[str, Any], policy: Policy, warnings: list[str]
) -> Spreading | str:
    """Return the spreading of `pod`, or the reason why there is none."""
    settings, packing = workload_type.spread, policy.spec.bin_packing
    requested = annotations.read(Keys.spread)
    if requested == NO_TOPOLOGY:
        return "the annotation spread is none"
    of_type = settings.topology
    key = requested or (None if of_type is None else policy.spec.topology_aliases.get(of_type, of_type))
    if key is None:
        return "the type does not spread its pods"
    group = replica_group(pod, policy.spread_group_label)
    if group is None:
        reason = f"no label and no owner identifies the replicas of the pod; the label {policy.spread_group_label} can"
        if requested is not None:
            warnings.append(f"{policy.keys.spread} has no effect: {reason}")
        return reason
    spreading = Spreading(key, group, settings, is_requested=requested is not None)
    packs = (annotations.text(policy.keys.bin_packing) or "").strip() == "true"
    if packs and spreading.is_undone_by(packing):
        if requested is None:
            return f"the annotation bin-packing packs the pod over {key}"
        warnings.append(
            f"{policy.keys.spread} wins over {policy.keys.bin_packing}: both are over {key}, and packing would undo it"
        )
    return spreading
