"""BinPacking: pack small pods on few nodes, so that whole nodes stay free for large pods."""

from collections.abc import Sequence
from typing import ClassVar

from webhook.mutation.edits import AddLabel, Edit, PreferPodAffinity
from webhook.mutation.rule import Skipped
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy


class BinPacking:
    """Adds a label to the pod and prefers nodes that run pods with that label."""

    name: ClassVar[str] = "BinPacking"

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | Skipped:
        """Return the label and the preferred podAffinity."""
        if not workload.bin_packing:
            return Skipped("bin-packing is off for this pod")
        if not workload.batch.adds_packing_hint:
            return Skipped("the policy leaves packing to the scheduler (schedulers.NAME.binPackingHint)")
        packing = policy.spec.bin_packing
        return (
            AddLabel(packing.label_key, packing.label_value, "others are not drawn to this pod"),
            PreferPodAffinity(
                packing.weight, packing.label_key, packing.label_value, packing.topology_key, packing.namespaces
            ),
        )
