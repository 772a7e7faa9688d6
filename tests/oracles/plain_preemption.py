"""A plain reference implementation of DefaultPreemption: on each node, pods are removed and put back one by one.

Every order of equally important pods and of budgets is tried. Amounts, affinity and volumes are checked by the filters,
on a snapshot without the removed pods; host ports and topology spread as kube-scheduler counts them, from its state
before pods are removed.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, permutations, product

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.selectors import selector_matches
from webhook.placement.framework.interface import CrossNodeFilterPlugin
from webhook.placement.framework.node_inclusion import required_affinity_matches, untolerated
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.default_preemption import potential_nodes
from webhook.placement.profiles.profile import DEFAULT

Victims = frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """The names of the victims on a node, and what kube-scheduler minimizes."""

    node: str
    victims: Victims
    cost: tuple[float, ...]


@dataclass(frozen=True)
class PlainPreemption:
    """A `pod`, normalized for `snapshot`, that no node can take."""

    pod: PodInfo
    snapshot: Snapshot

    @property
    def priority(self) -> int:
        """The priority of the pod."""
        return self.pod.preemption.priority or 0

    def possible(self) -> list[Outcome]:
        """The outcomes that kube-scheduler may choose; none if no eviction helps."""
        rows = potential_nodes(DEFAULT, self.pod, self.snapshot, never).nonzero()[0].tolist()
        found = [outcomes for row in rows if (outcomes := [*{*self.on_node(self.snapshot.nodes[row])}])]
        worst = [max(each.cost for each in outcomes) for outcomes in found]
        return [
            each
            for at, outcomes in enumerate(found)
            for each in outcomes
            if all(each.cost <= cost for other, cost in enumerate(worst) if other != at)
        ]

    def on_node(self, info: NodeInfo) -> Iterator[Outcome]:
        """Yield the outcome for each order of equally important pods on the node."""
        lower = sorted((each for each in info.pods if each.priority < self.priority), key=_importance)
        checked = _OnNode(self, info)
        if not lower or not checked.fits(frozenset(each.name for each in lower)):
            return
        equal = [[*group] for _, group in groupby(lower, _importance)]
        budgets = permutations(self.snapshot.disruption_budgets or ())
        for order, listed in product(product(*map(permutations, equal)), budgets):
            outcome = self._outcome(checked, [*chain.from_iterable(order)], listed)
            if outcome is not None:
                yield outcome

    def _outcome(
        self, checked: "_OnNode", ordered: Sequence[RunningPod], budgets: Sequence[DisruptionBudget]
    ) -> Outcome | None:
        violating = {*self._violating(ordered, budgets)}
        gone = {each.name for each in ordered}
        for pod in sorted(ordered, key=lambda each: each.name not in violating):
            if checked.fits(frozenset(gone - {pod.name})):
                gone.discard(pod.name)
        victims = [each for each in ordered if each.name in gone]
        if not victims:
            return None
        highest = victims[0].priority
        earliest = min(each.started_seconds or 2**62 for each in victims if each.priority == highest)
        total = sum(each.priority + 2**31 for each in victims)
        cost = (len(violating & gone), highest, total, len(victims), -earliest)
        return Outcome(checked.info.node.name, frozenset(gone), cost)

    @staticmethod
    def _violating(ordered: Iterable[RunningPod], budgets: Sequence[DisruptionBudget]) -> Iterator[str]:
        allowed = [each.disruptions_allowed for each in budgets]
        for pod in ordered:
            for number, budget in enumerate(budgets):
                if budget.namespace != pod.namespace or not (pod.labels and budget.selector):
                    continue
                if budget.selects(pod.labels) and pod.name not in budget.disrupted_pods:
                    allowed[number] -= 1
                    if allowed[number] < 0:
                        yield pod.name
                        break


@dataclass(frozen=True)
class _OnNode:
    """The filters on one node without pods; the names of these are in `gone`."""

    plain: PlainPreemption
    info: NodeInfo

    @cached_property
    def known(self) -> dict[frozenset[str], bool]:
        """The results so far, by the names of the removed pods."""
        return {}

    @cached_property
    def nominated(self) -> list[RunningPod]:
        """The nominated pods that have precedence on the node."""
        found = self.plain.snapshot.nominated.by_node.get(self.info.node.name, ())
        return [
            each
            for each in found
            if each.priority >= self.plain.priority and (each.rare.scheduler or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        ]

    def fits(self, gone: frozenset[str]) -> bool:
        """Return whether the pod fits, with nominated pods and without them."""
        if gone not in self.known:
            passes = ([*self.nominated], []) if self.nominated else ([],)
            self.known[gone] = all(self._passes(gone, pods) for pods in passes)
        return self.known[gone]

    def _passes(self, gone: frozenset[str], nominated: list[RunningPod]) -> bool:
        plain, snapshot = self.plain, self.plain.snapshot
        staying = [each for each in self.info.pods if each.name not in gone]
        info = NodeInfo.of(self.info.node, (*staying, *nominated))
        row = snapshot.rows[self.info.node.name]
        nodes = updated(snapshot, (info,), snapshot.generation)
        for plugin in DEFAULT.filters:
            if isinstance(plugin, CrossNodeFilterPlugin) and not plugin.is_relevant(plain.pod, snapshot, never):
                continue
            if isinstance(plugin, NodePorts):
                rejects = self._takes_port(gone, nominated)
            elif isinstance(plugin, PodTopologySpread):
                rejects = self._is_skewed(row, gone, nominated)
            else:
                rejects = any(rejected[row] for _, rejected in plugin.filter(plain.pod, nodes, never))
            if rejects:
                return False
        return True

    def _takes_port(self, gone: frozenset[str], nominated: Sequence[RunningPod]) -> bool:
        """A port is free once one of the pods that use it is removed, until it is put back."""
        ports = {port for each in self.info.pods for port in each.rare.host_ports}
        for each in self.info.pods:
            if each.priority < self.plain.priority:
                ports -= {*each.rare.host_ports}
        back = (each for each in self.info.pods if each.priority < self.plain.priority and each.name not in gone)
        ports |= {port for each in (*back, *nominated) for port in each.rare.host_ports}
        return any(wanted.conflicts(port) for wanted in self.plain.pod.host_ports for port in ports)

    def _is_skewed(self, row: int, gone: frozenset[str], nominated: Sequence[RunningPod]) -> bool:
        """Pods that are being deleted are not counted at first, but are subtracted and added."""
        snapshot, pod = self.plain.snapshot, self.plain.pod
        constraints = [each for each in pod.inter_pod.spread if each.when_unsatisfiable == DO_NOT_SCHEDULE]
        matching, tainted = required_affinity_matches(pod, snapshot, never), untolerated(pod, snapshot)
        keys = {each.topology_key for each in constraints}
        for constraint in constraints:
            counts = Counter[str]()
            self_matches = selector_matches(constraint.selector, dict(pod.inter_pod.labels))
            for at, info in enumerate(snapshot.nodes):
                is_left_out = (constraint.honors_affinity and not matching[at]) or (
                    constraint.honors_taints and tainted[at]
                )
                if is_left_out or not keys <= info.node.labels.keys():
                    continue
                selected = [
                    each
                    for each in (*info.pods, *(nominated if at == row else ()))
                    if each.namespace == pod.inter_pod.namespace and selector_matches(constraint.selector, each.labels)
                ]
                counts[info.node.labels[constraint.topology_key]] += sum(
                    each in nominated or bool(constraint.selector and not each.is_terminating) for each in selected
                ) - (at == row) * sum(each.name in gone for each in selected)
            value = self.info.node.labels.get(constraint.topology_key)
            if value is None:
                return True
            least = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
            if counts[value] + self_matches - least > constraint.max_skew:
                return True
        return False


def _importance(pod: RunningPod) -> tuple[int, float]:
    return -pod.priority, pod.started_seconds or 2**62
