"""The filters by which a pod fits on a node without some of the pods that run there, and which pods they read."""

from collections.abc import Iterator, Mapping, Sequence

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.kube.pod.volumes import NO_VOLUMES
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.placement.framework.interface import CrossNodeFilterPlugin, Failure, FilterPlugin, concerns
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile

# The filters that read the pods of the node, or whose state kube-scheduler updates when a pod is removed.
READ_PODS = (VolumeRestrictions, NodeVolumeLimits, PodTopologySpread, InterPodAffinity)
_READ_VOLUMES = (VolumeRestrictions, NodeVolumeLimits)

MOST_WORK = 300_000
"""The work of running these filters for one pod, in nodes; it takes some 60 ms."""
# The nodes that can be filtered in the time that one run needs for any number of nodes.
_WORK_OF_A_RUN = 1_500


class WorkSpentError(Exception):
    """The result is not known: the filters that read pods would have to run too often."""


class Room:
    """The filters of `profile` for `pod` on the nodes of `snapshot`; `work` bounds the runs of those that read pods."""

    def __init__(self, profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired, work: int) -> None:
        self.pod, self.snapshot, self.expired, self._work = pod, snapshot, expired, work
        nominated = nodes_with_nominated_pods(pod, snapshot, profile.scheduler_names, expired)
        self.nominated: Mapping[int, Sequence[RunningPod]] = nominated.pods_by_row if nominated else {}
        self.filters = [each for each in profile.filters if self._applies(each)]
        self.reading_pods = [each for each in self.filters if isinstance(each, READ_PODS)]
        fit = next((each for each in self.filters if isinstance(each, NodeResourcesFit)), None)
        self.requests = [] if fit is None else [*fit.counted(pod)]
        self.counts_places = fit is not None
        self.host_ports = pod.host_ports if any(isinstance(each, NodePorts) for each in self.filters) else ()
        self._of_facts: dict[str, list[Failure]] = {}
        self.reads_volumes = any(isinstance(each, _READ_VOLUMES) for each in self.reading_pods)
        # To pod affinity, it makes no difference how many equal pods a node has.
        self.reads_presence = all(isinstance(each, InterPodAffinity) for each in self.reading_pods)
        self._selectors = [*self._selecting()]
        self._selected: dict[int, bool] = {}

    def _applies(self, plugin: FilterPlugin) -> bool:
        if isinstance(plugin, CrossNodeFilterPlugin):
            return plugin.is_relevant(self.pod, self.snapshot, self.expired)
        return concerns(plugin, self.pod, self.snapshot)

    def _selecting(self) -> Iterator[LabelSelector | None]:
        """Yield the selectors by which the pod depends on the labels of running pods."""
        for plugin in self.reading_pods:
            if isinstance(plugin, PodTopologySpread):
                yield from (each.selector for each in plugin.hard_constraints(self.pod, self.snapshot))
            elif isinstance(plugin, InterPodAffinity):
                terms = self.pod.inter_pod.terms
                yield from (each.selector for each in (*terms.required, *terms.anti_required))

    def reads(self, running: RunningPod) -> bool:
        """Return whether `running` can change the result of the filters `reading_pods` on its node."""
        if running.terms.anti_required or (self.reads_volumes and running.volumes is not NO_VOLUMES):
            return True
        # Pods of a template share their labels.
        found = self._selected.get(id(running.labels))
        if found is None:
            found = any(selector_matches(each, running.labels) for each in self._selectors)
            self._selected[id(running.labels)] = found
        return found

    def misleads(self, row: int) -> bool:
        """Return whether kube-scheduler subtracts a terminating pod of the node from a count that does not include it.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, updateWithPod, and
        common.go, countPodsMatchSelector
        """
        if not any(isinstance(each, PodTopologySpread) for each in self.reading_pods):
            return False
        priority = self.pod.preemption.priority or 0
        pods = self.snapshot.nodes[row].pods
        return any(each.is_terminating and each.priority < priority and self.reads(each) for each in pods)

    def count_run(self) -> None:
        """Count a run of the filters that read pods.

        Raises:
            WorkSpentError: no work is left.
        """
        self._work -= _WORK_OF_A_RUN + len(self.snapshot.nodes)
        if self._work < 0:
            raise WorkSpentError

    def of_facts(self, plugin: FilterPlugin, row: int) -> list[str]:
        """Return the reasons why `plugin` rejects the node in `row` with all its pods."""
        if plugin.name not in self._of_facts:
            self._of_facts[plugin.name] = [*plugin.filter(self.pod, self.snapshot, self.expired)]
        return [reason for reason, rejected in self._of_facts[plugin.name] if rejected[row]]
