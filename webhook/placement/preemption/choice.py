"""The choice of kube-scheduler among nodes on which an eviction makes room, and its uncertain parts.

Source: k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, SelectCandidate
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from webhook.cluster.snapshot import Snapshot
from webhook.documents.listing import some
from webhook.kube.release import Change
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.lower_pods import NOT_STARTED
from webhook.placement.preemption.victims import ABOVE_ALL_PRIORITIES, Candidate, Cost
from webhook.placement.profiles.profile import Profile

_MORE_ORDERS = "equally important pods, or budgets of one pod, are in more orders than are tried"
# The most budgets whose pods are counted.
_MOST_COUNTED = 20
_WORST: Cost = (2**31, 0, 0, 0, 0)


def choose(
    profile: Profile, pod: PodInfo, snapshot: Snapshot, found: Sequence[Sequence[Candidate]]
) -> PredictedPreemption:
    """Return the choice among `found`, the possible outcomes of each node."""
    best, worst = zip(*(_bounds(outcomes, snapshot) for outcomes in found), strict=True)
    # An outcome can win if no other node is better in all its outcomes.
    limit = min(worst)
    possible_on = [outcomes for outcomes, cost in zip(found, best, strict=True) if cost <= limit]
    is_open = any(each.is_open for outcomes in possible_on for each in outcomes)
    notes = list[str]()
    interested = [each.name for each in profile.preempting_extenders if each.applies_to(pod)]
    if interested or is_open:
        winners = [each for outcomes in (found if interested else possible_on) for each in outcomes]
        chooser = f"{', '.join(interested)} can choose among {len(found)} nodes"
        notes.append(chooser if interested else _MORE_ORDERS)
    else:
        winners = [each for outcomes in found for each in outcomes if each.cost <= limit]
    winners.sort(key=lambda each: each.cost)
    nodes = tuple(dict.fromkeys(each.node for each in winners))
    counts = [len(each.victims) for each in winners]
    counts += [1, max(len(each.victims) + len(each.tied) for each in winners)] if is_open else []
    possible = tuple(chain.from_iterable(each.victims + each.tied for each in winners))
    if len(nodes) < len(winners):
        # Outcomes of one node share pods.
        possible = tuple(dict(zip(map(id, possible), possible, strict=True)).values())
    is_sure = not (interested or is_open)
    is_certain = is_sure and len(nodes) == 1 and not any(each.tied for each in winners)
    is_exact = is_certain and len({frozenset(map(id, each.victims)) for each in winners}) == 1
    message = ""
    if len(nodes) == 1 and min(counts) == max(counts) and is_sure:
        message = _success(snapshot, nodes[0], counts[0])
    if not is_exact and is_sure:
        notes.append(_tie(nodes, counts, len(possible)))
    notes += unknown_of_budgets(snapshot)
    notes += _older_than_pods(snapshot, frozenset().union(*(each.selecting() for each in winners)))
    return PredictedPreemption(
        nodes=nodes,
        victims=possible,
        least=min(counts),
        most=max(counts),
        violates=tuple(dict.fromkeys(name for each in winners for name in each.violates)),
        is_exact=is_exact,
        why="; ".join(notes),
        message=message,
        candidates=len(found),
        chosen=winners[0].victims,
    )


def _bounds(outcomes: Sequence[Candidate], snapshot: Snapshot) -> tuple[Cost, Cost]:
    if not any(each.is_open for each in outcomes):
        costs = [each.cost for each in outcomes]
        return min(costs), max(costs)
    lowest = snapshot.nodes[snapshot.rows[outcomes[0].node]].lowest_priority
    return (0, lowest, lowest + ABOVE_ALL_PRIORITIES, 1, -NOT_STARTED), _WORST


def _success(snapshot: Snapshot, node: str, count: int) -> str:
    if not snapshot.release.has(Change.PREEMPTION_NAMES_NODE):
        return ""
    return f"preemption: found a potential placement for pod on node {node}, preempting {count} victims"


def _tie(nodes: Sequence[str], counts: Sequence[int], possible: int) -> str:
    number = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    if len(nodes) > 1:
        return f"one of {some(nodes)}; {number} {'victim' if max(counts) == 1 else 'victims'} each"
    return f"{number} of these {possible}: they are equal to kube-scheduler"


def unknown_of_budgets(snapshot: Snapshot) -> Iterable[str]:
    """Yield texts about unknown or stale PodDisruptionBudgets."""
    if snapshot.disruption_budgets is None:
        yield "PodDisruptionBudgets are not known"
        return
    stale = [each.full_name for each in snapshot.disruption_budgets if each.is_stale]
    if stale:
        yield f"the status of PodDisruptionBudget {some(stale)} is older than its spec"


def _older_than_pods(snapshot: Snapshot, budgets: Collection[int]) -> Iterator[str]:
    """Yield texts about `budgets` whose status counts more healthy pods than there are."""
    for number in sorted(budgets)[:_MOST_COUNTED]:
        budget = (snapshot.disruption_budgets or ())[number]
        if not budget.healthy:
            continue
        selected = snapshot.pods.selected((budget.namespace,), budget.selector) & ~snapshot.pods.terminating()
        if budget.healthy > (pods := len(snapshot.pods.rows_of(selected))):
            counted = f"it counts {budget.healthy} healthy pods, but there are {pods}"
            yield f"the status of PodDisruptionBudget {budget.full_name} is older than its pods: {counted}"
