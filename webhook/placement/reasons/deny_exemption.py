"""Reasons not to deny an Infeasible pod: temporary states of nodes, and unknown resources."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Rows, Snapshot
from webhook.kube.pod.taints import CONDITION_DOMAINS, is_temporary, keeps_away
from webhook.kube.release import NEWEST, OLDEST
from webhook.placement.framework.node_states import tolerating_states, uncordoned, with_healthy_devices
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.unmodelled import unknown_resources

UNLISTED = "the policy does not list the scheduler of the pod, so its rules are not known"
SHARED = "a scheduler extender such as HAMi decides on the shares of cards that the pod requests"
_OLDER = f"the rules of release 1.{{minor}} are not known, only those of 1.{OLDEST} to 1.{NEWEST}"
_CORDONED = "cordoned, not ready or not well"
_WITHOUT_PODS = ", without the pods that run there"
_MOST_KEYS = 3

FeasibleNodes = Callable[[PodInfo, Snapshot], Mask]


@dataclass(frozen=True, slots=True)
class Restored:
    """A pod, `info`, that tolerates the temporary states of nodes, and `nodes` uncordoned and with healthy devices.

    `before` are the actual pod and nodes.
    """

    info: PodInfo
    nodes: Snapshot
    before: tuple[PodInfo, Snapshot]
    temporary: Collection[str]

    @classmethod
    def of(cls, info: PodInfo, nodes: Snapshot, temporary: Collection[str]) -> "Restored | None":
        """Return the pod and `nodes` without temporary states, or None if there are none."""
        # A node can be closed to a pod that tolerates its taint, as by KAI.
        restored = with_healthy_devices(info, uncordoned(nodes))
        changed = cls(tolerating_states(info, nodes, temporary), restored, (info, nodes), temporary)
        return None if changed.info is info and changed.nodes is nodes else changed

    def doubt(self, rows: Rows, *, of_each: bool = True) -> str:
        """Return the sentence that the nodes in `rows` can take the pod after their temporary states end.

        With `of_each`, the sentence is about each node by itself.
        """
        broken = self._short(rows, of_each=of_each)
        tainted = np.array([bool(self._taints(row)) or self._is_cordoned(row) for row in rows.tolist()], dtype=np.bool_)
        # Nodes that only one thing keeps from taking the pod come first.
        simple = next((each for each in (tainted & ~broken, broken & ~tainted) if each.any()), broken & tainted)
        rows, broken, tainted = rows[simple], broken[simple], tainted[simple]
        is_one = of_each and len(rows) == 1
        number = f"{len(rows)} " if of_each else ""
        text = f"{number}{'node' if is_one else 'nodes'} would do"
        if tainted.any():
            text += f" that {self._states(rows, is_one=is_one)}"
        return f"{text}{',' if tainted.any() else ''} {self._devices(rows, of_each=of_each)}" if broken.any() else text

    def _short(self, rows: Rows, resources: Collection[str] = (), *, of_each: bool) -> Mask:
        """Return a mask of `rows`: nodes with too few healthy devices of `resources`, or of any the pod requests."""
        info, nodes = self.before
        short = np.zeros(len(rows), dtype=np.bool_)
        for resource, amount in info.requests:
            if not resources or resource in resources:
                offered, healthy = nodes.allocatable(resource)[rows], self.nodes.allocatable(resource)[rows]
                short |= (offered < (np.minimum(healthy, amount) if of_each else healthy)) & (amount <= healthy)
        return short

    def _is_cordoned(self, row: int) -> bool:
        return bool(self.before[1].unschedulable[row])

    def _taints(self, row: int) -> list[str]:
        info, nodes = self.before
        return [
            each.key
            for each in nodes.nodes[row].node.taints
            if is_temporary(each.key, self.temporary) and keeps_away(each, info.tolerations)
        ]

    def _states(self, rows: Rows, *, is_one: bool) -> str:
        keys = dict.fromkeys(key for row in rows.tolist() for key in self._taints(row))
        listed = [key for key in keys if not key.startswith(CONDITION_DOMAINS)]
        is_not_well = len(listed) < len(keys) or any(map(self._is_cordoned, rows.tolist()))
        parts = [f"{'is' if is_one else 'are'} {_CORDONED}"] if is_not_well else []
        if listed:
            names = ", ".join(listed[:_MOST_KEYS]) + (", …" if len(listed) > _MOST_KEYS else "")
            parts.append(f"{'has' if is_one else 'have'} a temporary taint: {names}")
        return " or ".join(parts)

    def _devices(self, rows: Rows, *, of_each: bool) -> str:
        info, nodes = self.before
        resource = next(name for name, _ in info.requests if self._short(rows, (name,), of_each=of_each).any())
        whole, healthy = self.nodes.allocatable(resource)[rows], int(nodes.allocatable(resource)[rows].sum())
        owner = "its" if of_each and len(rows) == 1 else "their"
        if whole.max() >= LARGEST_AMOUNT:
            return f"if {owner} cards were registered ({healthy} are)"
        total = int(whole.sum())
        cards = "card" if total == 1 else "cards"
        return f"if {owner} {total} {cards} {'was' if total == 1 else 'were'} healthy ({healthy} of {total} are)"


def deny_exemption(info: PodInfo, snapshot: Snapshot, temporary: Collection[str], feasible_on: FeasibleNodes) -> str:
    """Return the reason not to deny an Infeasible pod, `info`, or an empty string if there is none.

    `feasible_on` returns the nodes that can take a pod. `temporary` are the keys of temporary taints in addition to
    those of Kubernetes.
    """
    nodes = snapshot.without_pods()
    if nodes.release.minor < OLDEST:
        return _OLDER.format(minor=nodes.release.minor)
    restored = Restored.of(info, nodes, temporary)
    if restored is not None:
        as_it_is = Restored.of(info, snapshot, temporary) or restored
        for found in (as_it_is, restored):
            rows = np.flatnonzero(feasible_on(found.info, found.nodes))
            if len(rows):
                return f"{found.doubt(rows)}{_WITHOUT_PODS if found is restored else ''}"
        info, nodes = restored.info, restored.nodes
    unknown = unknown_resources(info, nodes)
    if not unknown:
        return ""
    rest = tuple([each for each in info.requests if each[0] not in unknown])
    if not feasible_on(info._replace(requests=rest), nodes).any():
        return ""
    return f"no node offers {', '.join(unknown)}, and whether a DeviceClass stands behind it is not known"
