"""ExtraTolerations: tolerate the taints that the policy lists for the pod's accelerators and workload type."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import AddToleration, Edit
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class ExtraTolerations:
    """Tolerates taints of cloud providers and other software."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return the tolerations of the accelerators that the pod requests, then those of its type."""
        listed = [accelerator.extra_tolerations for accelerator in workload.requested_accelerators]
        edits = [
            AddToleration(each.key, each.value, each.effect or "", each.operator, each.toleration_seconds)
            for tolerations in (*listed, workload.type.extra_tolerations)
            for each in tolerations
        ]
        return edits or "the policy lists no extra tolerations for this pod"
