"""The PodDisruptionBudgets that evictions violate.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Column, Rows
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.selectors import LabelRequirement, LabelSelector, selector_matches
from webhook.placement.preemption.lower_pods import LowerPods

_NONE = -1
_SEVERAL = -2

# The numbers of budgets and the rest of their selectors, by label.
_Filed = dict[tuple[str, str] | None, list[tuple[int, LabelSelector]]]


class Protection:
    """The `budgets` that select the `lower` pods.

    `violated` is, for each pod, the number of the budget that its eviction violates after those of the pods before it,
    or negative for none. `is_mixed` is true for equally important pods whose order decides which of them violate
    a budget; `mixes` is true if there are any. Pods of equal `kinds` are equal for all budgets; the kind of unprotected
    pods is 0. `unordered` are the nodes on which the order of the budgets, which is random in kube-scheduler, decides
    which pods violate one.
    """

    def __init__(self, budgets: Sequence[DisruptionBudget], lower: LowerPods, expired: Expired = never) -> None:
        self._budgets, self._lower, self._expired = budgets, lower, expired
        self.violated: Column = np.full(len(lower.pods), _NONE)
        self.kinds: Column = np.zeros(len(lower.pods), dtype=np.int64)
        self.is_mixed: Mask = np.zeros(len(lower.pods), dtype=np.bool_)
        self.unordered: set[int] = set()
        self.mixes = False
        if not budgets:
            return
        index = _Index(budgets)
        kinds, examples = lower.kinds
        numbers: dict[tuple[int, ...], int] = {(): 0}
        of_kind = [numbers.setdefault(index.selecting(each), len(numbers)) for each in in_time(examples, expired)]
        self._by_kind = [*numbers]
        self.kinds = np.array(of_kind)[kinds]
        # The only budget of the pods of each kind, if it counts all of them.
        only = [each[0] if len(each) == 1 and not budgets[each[0]].disrupted_pods else _SEVERAL for each in numbers]
        single = np.array([_NONE, *only[1:]])[self.kinds]
        mixed_ranks = self._violate_single(single)
        for node in np.unique(lower.node_of[single == _SEVERAL]).tolist():
            places = np.flatnonzero(lower.node_of == node)
            self.violated[places], mixed, is_unordered = self.in_order(places)
            mixed_ranks += mixed
            if is_unordered:
                self.unordered.add(node)
        if mixed_ranks:
            is_mixed = np.zeros(int(lower.ranks[-1]) + 1, dtype=np.bool_)
            is_mixed[mixed_ranks] = True
            self.is_mixed, self.mixes = is_mixed[lower.ranks], True

    def name(self, violated: int) -> str:
        """Return the namespace and the name of a budget by its number."""
        return self._budgets[violated].full_name

    def _violate_single(self, single: Column) -> list[int]:
        """Set which pods violate the only budget that selects them; return the ranks in which their order decides."""
        lower = self._lower
        selected = np.flatnonzero(single >= 0)
        runs = lower.node_of[selected] * len(self._budgets) + single[selected]
        order = np.argsort(runs, kind="stable")
        runs, selected = runs[order], selected[order]
        is_first = np.append([True], runs[1:] != runs[:-1])[: len(runs)]
        count = np.arange(len(runs))
        before = count - np.maximum.accumulate(np.where(is_first, count, 0))
        allowed = np.array([each.disruptions_allowed for each in self._budgets])
        is_violated = before >= allowed[single[selected]]
        self.violated[selected[is_violated]] = single[selected[is_violated]]
        ranks = lower.ranks[selected]
        is_mixed = ~is_first[1:] & (ranks[1:] == ranks[:-1]) & (is_violated[1:] != is_violated[:-1])
        mixed: list[int] = ranks[1:][is_mixed].tolist()
        return mixed

    def in_order(self, places: Rows) -> tuple[Column, list[int], bool]:
        """Return `violated` for one node if its pods are evicted in the order of `places`, and the mixed ranks.

        The last value is true if the order of the budgets decides which pods violate one. A pod that violates a budget
        uses none here; in kube-scheduler, it uses its budgets that come before that one.
        """
        left = [each.disruptions_allowed for each in self._budgets]
        # `least` is left if pods that violate a budget use all of theirs. `violating` are those not subtracted yet.
        least, violating = [*left], Counter[int]()
        violated, mixed, is_unordered = np.full(len(places), _NONE), list[int](), False
        last_rank: dict[int, int] = {}
        ranks, kinds = self._lower.ranks[places].tolist(), self.kinds[places].tolist()
        pods = zip(places.tolist(), ranks, kinds, strict=True)
        for at, (place, rank, kind) in enumerate(in_time(pods, self._expired)):
            name = self._lower.pods[place].name
            selecting = self._by_kind[kind]
            used = (each for each in selecting if name not in self._budgets[each].disrupted_pods)
            spent = next((each for each in used if left[each] <= 0), _NONE)
            if spent != _NONE:
                violated[at] = spent
                violating[kind] += 1
                if last_rank.get(spent) == rank:
                    mixed.append(rank)
                # Before the equally important pods that use another budget of this one, it could use that, too.
                for number in selecting:
                    if number != spent and last_rank.get(number) == rank:
                        pending = sum(count for other, count in violating.items() if number in self._by_kind[other])
                        is_unordered |= least[number] < pending
                continue
            for other, count in violating.items():
                for number in self._by_kind[other]:
                    least[number] -= count
            violating.clear()
            for number in selecting:
                if name in self._budgets[number].disrupted_pods:
                    continue
                is_unordered |= least[number] <= 0
                left[number] -= 1
                least[number] -= 1
                last_rank[number] = rank
        return violated, mixed, is_unordered


class _Index:
    """The numbers of the budgets with the rest of their selectors, by the label that the fewest budgets require.

    Budgets with an empty selector match nothing here, as in kube-scheduler.
    """

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        several = [each.selector for each in budgets if each.selector and len(each.selector) > 1]
        counts = Counter(chain.from_iterable(several))

        def rarity(requirement: LabelRequirement) -> tuple[bool, int]:
            return requirement.operator != "In" or len(requirement.values) != 1, counts[requirement]

        self._filed: dict[str, _Filed] = defaultdict(lambda: defaultdict(list))
        for number, budget in enumerate(budgets):
            if selector := budget.selector:
                is_only = len(selector) == 1
                key, operator, values = selector[0] if is_only else min(selector, key=rarity)
                label = (key, values[0]) if operator == "In" and len(values) == 1 else None
                self._filed[budget.namespace][label].append((number, () if is_only and label else selector))

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
