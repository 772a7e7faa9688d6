"""The PriorityClasses of the workload types allow kube-scheduler to evict the pods that should make room."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from placement_doctor import commands
from placement_doctor.check import Finding, check, info, warning
from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from webhook.backends.kai import Kai
from webhook.backends.registry import backend_of
from webhook.backends.volcano import Volcano
from webhook.cluster.objects.priority_class import PriorityClass, priority_class_named
from webhook.documents.field import InvalidInput
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.policy.policy import Policy

# The names of the types of the built-in policy state who makes room for whom.
_EVICTING, _MAKING_ROOM = "inference", "training"
_ONLY_THEIR_OWN = (Volcano, Kai)


class _Pair(NamedTuple):
    """Two types that share `pools`, with the PriorityClasses of their pods."""

    evicting: str
    of_evicting: PriorityClass
    evicted: str
    of_evicted: PriorityClass
    pools: str


@check(
    "`kubectl create priorityclass NAME --value N`, and name it in `workloadTypes.TYPE.priorityClassName`",
    needs={Source.PRIORITY_CLASSES, Source.POLICY, Source.PODS, Source.ALL_BUDGETS},
)
def preemption(cluster: Cluster) -> Iterator[Finding]:
    """By their PriorityClasses, inference cannot evict training, or pods of gangs that it evicts have no budget.

    Other types are not compared, because their classes show no intent. Pods of a gang without a PodDisruptionBudget are
    an INFO.
    """
    if not cluster.knows(Source.PRIORITY_CLASSES):
        return
    classes = dict(_classes(cluster))
    for policy in cluster.policies:
        for pair in _pairs(policy, classes):
            if (pair.evicting, pair.evicted) == (_EVICTING, _MAKING_ROOM):
                yield from _obstacles(cluster, policy, pair)
            yield from _unprotected(cluster, policy, pair)


def _classes(cluster: Cluster) -> Iterator[tuple[str, PriorityClass]]:
    for content in cluster.of(Source.PRIORITY_CLASSES):
        try:
            found = PriorityClass.of(content)
        except InvalidInput:
            continue
        yield found.name, found


def _pairs(policy: Policy, classes: Mapping[str, PriorityClass]) -> Iterator[_Pair]:
    """Yield the pairs of types that share a pool, in both orders. Missing classes are a finding of another check."""
    types = policy.spec.workload_types
    known = {
        name: found
        for name, each in types.items()
        if (found := priority_class_named(each.priority_class_name or "", classes)) is not None
    }
    for evicting, of_evicting in known.items():
        for evicted, of_evicted in known.items():
            pools = [each for each in types[evicting].node_usage.allow if each in types[evicted].node_usage.allow]
            if evicting != evicted and pools:
                yield _Pair(evicting, of_evicting, evicted, of_evicted, ", ".join(pools))


def _obstacles(cluster: Cluster, policy: Policy, pair: _Pair) -> Iterator[Finding]:
    """Yield findings about why pods of one type cannot evict pods of the other type, which should make room."""
    own, other = pair.of_evicting, pair.of_evicted
    effect = f"pods of {pair.evicting} evict no pod of {pair.evicted} in {pair.pools}"
    if own.value < other.value:
        named = pair.evicted if policy.spec.workload_types[pair.evicted].priority_class_name else pair.evicting
        where = f"{cluster.place_of(policy)}: spec.workloadTypes.{named}.priorityClassName"
        what = f"{_shown(other)} of {pair.evicted} is above {_shown(own)} of {pair.evicting}: {effect}"
        created = commands.command("kubectl", "create", "priorityclass", "NAME", "--value=N")
        yield warning(where, what, f"{created} with N above {other.value}, and name it for {pair.evicting}")
    elif own.never_preempts:
        value = f"--value={own.value}"
        created = commands.command("kubectl", "create", "priorityclass", "NAME", value)
        where, remedy = f"PriorityClass {own.name}: preemptionPolicy", f"{created}, and name it for {pair.evicting}"
        yield warning(where, f"Never, and it is immutable: {effect}", remedy)


def _shown(priority: PriorityClass) -> str:
    return f"{priority.name} ({priority.value})" if priority.name else "the default priority 0"


def _unprotected(cluster: Cluster, policy: Policy, pair: _Pair) -> Iterator[Finding]:
    """Yield findings about namespaces with gang pods that a type can evict and that no PodDisruptionBudget selects."""
    scheduler = policy.spec.workload_types[pair.evicting].scheduler_name or DEFAULT_SCHEDULER
    can_evict = pair.of_evicting.value > pair.of_evicted.value and not pair.of_evicting.never_preempts
    if not can_evict or backend_of(policy.spec, scheduler) in _ONLY_THEIR_OWN:
        return
    for (namespace, workload_type), (first, count) in cluster.unprotected.items():
        if workload_type == pair.evicted and cluster.policy_of(namespace) is policy:
            pods = "1 pod of a gang is" if count == 1 else f"{count} pods of gangs are"
            what = (
                f"{pods} selected by no PodDisruptionBudget, such as {first}: kube-scheduler can evict one of a gang "
                f"for {pair.evicting}, and the others hold their cards in vain"
            )
            words = ("kubectl", "-n", namespace, "create", "poddisruptionbudget", "NAME", "--selector=LABELS")
            created = commands.command(*words, "--min-available=100%")
            remedy = f"{created} makes kube-scheduler evict other pods first, and node drains wait"
            yield info(f"Namespace {namespace}: pods of {workload_type}", what, remedy)
