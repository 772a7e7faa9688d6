"""The PodDisruptionBudgets that evictions violate.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.selectors import LabelRequirement, LabelSelector, selector_matches
from webhook.placement.preemption.lower_pods import LowerPods

_NONE = -1
# The most numbers that are held for some orders.
_MOST_CELLS = 2**20

# The numbers of budgets and the rest of their selectors, by label.
_Filed = dict[tuple[str, str] | None, list[tuple[int, LabelSelector]]]


class Violations(NamedTuple):
    """The pods that violate a budget if they are evicted in some orders.

    `violated` is, for each pod, the number of the budget that its eviction violates after those of the pods before it,
    or negative for none. `mixed` are the ranks of equally important pods whose order decides which of them violate
    a budget. `unordered` are the orders in which the order of the budgets, which is random in kube-scheduler, decides
    which pods violate one.
    """

    violated: Column
    mixed: Rows
    unordered: Rows


class Protection:
    """The `budgets` that select the `lower` pods.

    `violated` is that of `Violations` in the order of the pods. `is_mixed` is true for equally important pods whose
    order decides which of them violate a budget; `mixes` is true if there are any. Pods of equal `kinds` are equal for
    all budgets; the kind of unprotected pods is 0. `unordered` are the nodes on which the order of the budgets decides.
    """

    def __init__(self, budgets: Sequence[DisruptionBudget], lower: LowerPods, expired: Expired = never) -> None:
        self._budgets, self._lower, self._expired = budgets, lower, expired
        self.violated: Column = np.full(len(lower.pods), _NONE)
        self.kinds: Column = np.zeros(len(lower.pods), dtype=np.int64)
        self.is_mixed: Mask = np.zeros(len(lower.pods), dtype=np.bool_)
        self.unordered: frozenset[int] = frozenset()
        self.mixes = False
        self._by_kind: list[tuple[int, ...]] = [()]
        near = [number for number, each in enumerate(budgets) if each.namespace in lower.namespaces]
        if not near:
            return
        kinds, examples = lower.kinds(budgets[each].selector for each in near)
        index = _Index(budgets, near)
        numbers: dict[tuple[int, ...], int] = {(): 0}
        of_kind = [numbers.setdefault(index.selecting(each), len(numbers)) for each in in_time(examples, expired)]
        self._by_kind, self.kinds = [*numbers], np.array(of_kind)[kinds]
        self._allowed = np.array([*(each.disruptions_allowed for each in budgets), LARGEST_AMOUNT])
        # The budgets of each pod in their order, and the number of budgets where it has no more.
        padded = [*zip_longest(*numbers, fillvalue=len(budgets))]
        self._used = np.array(padded, dtype=np.int64).T.reshape(len(numbers), -1)[self.kinds]
        self._leave_out_disrupted()
        self.violated, mixed, unordered = self.in_order(np.arange(len(lower.pods)), lower.node_of)
        self.unordered = frozenset(unordered.tolist())
        if len(mixed):
            is_mixed = np.zeros(int(lower.ranks[-1]) + 1, dtype=np.bool_)
            is_mixed[mixed] = True
            self.is_mixed, self.mixes = is_mixed[lower.ranks], True

    def name(self, violated: int) -> str:
        """Return the namespace and the name of a budget by its number."""
        return self._budgets[violated].full_name

    def selecting(self, kinds: Iterable[int]) -> frozenset[int]:
        """Return the numbers of the budgets that select pods of `kinds`."""
        return frozenset(chain.from_iterable(self._by_kind[each] for each in {*kinds}))

    def _leave_out_disrupted(self) -> None:
        """Leave out the budgets that count a pod as gone already."""
        disrupted = [(at, each.disrupted_pods) for at, each in enumerate(self._budgets) if each.disrupted_pods]
        for number, names in in_time(disrupted, self._expired):
            for at in np.flatnonzero((self._used == number).any(axis=1)).tolist():
                if self._lower.pods[at].name in names:
                    self._used[at][self._used[at] == number] = len(self._budgets)

    def in_order(self, places: Rows, order_of: Rows) -> Violations:
        """Return the violations if pods are evicted in the order of `places`, for each number of `order_of`.

        A pod that violates a budget uses none here; in kube-scheduler, it uses its budgets that come before that one.
        """
        used = self._used.take(places, axis=0)
        pods, _ = entries = np.nonzero(used < len(self._budgets))
        budgets = used[entries]
        runs = order_of[pods] * len(self._budgets) + budgets
        by_run = np.argsort(runs, kind="stable")
        runs, pods, budgets = runs[by_run], pods[by_run], budgets[by_run]
        at, is_first = np.arange(len(runs)), np.append([True], runs[1:] != runs[:-1])[: len(runs)]
        start = np.maximum.accumulate(np.where(is_first, at, 0))
        # If all pods before it use a budget, also those that violate one.
        is_spent = at - start >= self._allowed[budgets]
        violated = np.full(len(places), _NONE)
        if used.shape[1] > 1 and (used[:, 1] < len(self._budgets)).any():
            self._violate_in_turn(used, order_of, violated)
        else:
            violated[pods[is_spent]] = budgets[is_spent]
        is_violating = violated[pods] >= 0
        ranks = self._lower.ranks[places[pods]]
        # The last pod before it that uses the budget.
        last = np.append([-1], np.maximum.accumulate(np.where(is_violating, -1, at))[:-1])[: len(runs)]
        is_after_equal = (last >= start) & (ranks[last] == ranks)
        mixed = ranks[is_after_equal & (violated[pods] == budgets)]
        # Before the equally important pods that use another budget of a pod that violates one, it could use that, too.
        decides = ~is_violating | (is_after_equal & (violated[pods] != budgets))
        return Violations(violated, mixed, np.unique(order_of[pods[is_spent & decides]]))

    def _violate_in_turn(self, used: Rows, order_of: Rows, violated: Column) -> None:
        """Set `violated` of pods with several budgets, one pod of each order after the other."""
        count, none = int(order_of[-1]) + 1, len(self._budgets)
        bounds = np.searchsorted(order_of, np.arange(count + 1))
        position = np.arange(len(order_of)) - bounds[order_of]
        length = int(position.max()) + 1
        at_once = max(1, _MOST_CELLS // max(length * used.shape[1], none))
        for first in in_time(range(0, count, at_once), self._expired):
            orders = slice(bounds[first], bounds[min(first + at_once, count)])
            here = order_of[orders] - first, position[orders]
            number = int(here[0][-1]) + 1
            left = np.tile(self._allowed, number)
            places = np.full((length, number, used.shape[1]), none)
            places[here[1], here[0]] = used[orders] + (here[0] * (none + 1))[:, np.newaxis]
            spent = np.empty((length, number), dtype=np.int64)
            for at, budgets in enumerate(places):
                is_spent = left.take(budgets) <= 0
                is_violating: Mask = np.any(is_spent, axis=1)
                left[budgets] -= ~is_violating[:, np.newaxis]
                spent[at] = np.where(is_violating, is_spent.argmax(axis=1), _NONE)
            found = spent[here[1], here[0]]
            of_pods = used[orders][np.arange(len(found)), found]
            violated[orders] = np.where(found >= 0, of_pods, _NONE)


class _Index:
    """The numbers of the budgets with the rest of their selectors, by the values of the label that the fewest require.

    Budgets with an empty selector match nothing here, as in kube-scheduler.
    """

    def __init__(self, budgets: Sequence[DisruptionBudget], numbers: Sequence[int]) -> None:
        several = [found for each in numbers if (found := budgets[each].selector) and len(found) > 1]
        counts = Counter(chain.from_iterable(several))

        def rarity(requirement: LabelRequirement) -> tuple[bool, int]:
            return requirement.operator != "In", counts[requirement]

        self._filed: dict[str, _Filed] = defaultdict(lambda: defaultdict(list))
        for number in numbers:
            if selector := budgets[number].selector:
                is_only = len(selector) == 1
                key, operator, values = selector[0] if is_only else min(selector, key=rarity)
                rest = () if is_only and operator == "In" else selector
                for value in {*values} if operator == "In" else (None,):
                    label = None if value is None else (key, value)
                    self._filed[budgets[number].namespace][label].append((number, rest))

    def selecting(self, pod: RunningPod) -> tuple[int, ...]:
        """Return the budgets that select `pod`. Pods without labels match nothing, as in kube-scheduler."""
        labels, found = pod.labels, list[int]()
        filed = self._filed.get(pod.namespace) if labels else None
        if not filed:
            return ()
        for label in (None, *labels.items()):
            for number, rest in filed.get(label, ()):
                if not rest or selector_matches(rest, labels):
                    found.append(number)
        found.sort()
        return tuple(found)
