"""The note on evictions for pods whose evictions DefaultPreemption does not decide."""

from collections.abc import Sequence

from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE
from webhook.placement.framework.result import Placement
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.pod.network_limit import configuration_of
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.diagnosis import rejections

_NO_DEVICES = "preemption frees no devices: kube-scheduler evicts no pod for the devices of ResourceClaims"
_KAI = "not known: KAI may evict pods: it searches scenarios (consolidation, reclaim, preempt), which are not predicted"
# Volcano's other actions evict pods, or are not known to evict none.
# Source: volcano.sh/volcano/pkg/scheduler/actions/factory.go, the registered actions
_EVICTING_NOTHING = frozenset(("enqueue", "allocate", "backfill"))
_WHOSE = {"preempt": "of its queue", "reclaim": "of other queues"}


def preemption_note(
    backend: str,
    profile: Profile,
    pod: PodInfo,
    snapshot: Snapshot,
    placement: Placement,
    without_pods: Sequence[str],
) -> str:
    """Return why there are no evictions for the waiting `pod` or why they are not known; "" if they are predicted.

    `backend` is the backend of its scheduler in the policy. `pod` must be normalized for `snapshot`. `without_pods` are
    the nodes that could take it if no pods were running.
    """
    if placement.verdict != "Waiting" or pod.gates:
        return ""
    if backend == "kai":
        return _KAI
    if backend == "volcano":
        return _volcano(configuration_of(snapshot).actions)
    preemption = placement.preemption
    if preemption is None or preemption.evicts or pod.preemption.is_never:
        return ""
    if not preemption.is_exact:
        return f"not known: {preemption.why}"
    rows = [snapshot.rows[each] for each in without_pods]
    found = rejections(profile, pod, snapshot, ignore_transient=True)
    lacks_devices = any(each.plugin == DynamicResources.name and each.rejected[rows].any() for each in found)
    return _NO_DEVICES if lacks_devices else ""


def _volcano(actions: frozenset[str] | None) -> str:
    if actions is None:
        unread = f"its ConfigMap {VOLCANO_NAMESPACE}/{VOLCANO_CONFIGURATION} is not known"
        return f"not known: Volcano may evict pods of its queue: {unread}"
    evicting = sorted(actions - _EVICTING_NOTHING)
    if not evicting:
        return "Volcano evicts no pod: its configuration has no action preempt or reclaim"
    whose = " or ".join(_WHOSE[each] for each in evicting if each in _WHOSE)
    noun = "action" if len(evicting) == 1 else "actions"
    return f"not known: Volcano may evict pods{whose and f' {whose}'} ({noun} {', '.join(evicting)})"
