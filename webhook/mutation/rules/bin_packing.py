"""BinPacking: pack small pods on few nodes, so that whole nodes stay free for large pods."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import AddLabel, Edit, packing_hint
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class BinPacking:
    """Adds a label to the pod and prefers nodes that run pods with that label."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return the label and the preferred podAffinity."""
        if not workload.bin_packing:
            return "bin-packing is off for this pod"
        if not workload.batch.adds_packing_hint:
            return "the policy leaves packing to the scheduler (schedulers.NAME.binPackingHint)"
        packing = policy.spec.bin_packing
        spreading = workload.spreading
        if not isinstance(spreading, str) and spreading.is_undone_by(packing):
            return f"the pod prefers to be spread over {spreading.topology_key}, which packing would undo"
        return (
            AddLabel(packing.label_key, packing.label_value, "others are not drawn to this pod"),
            packing_hint(packing),
        )
