"""The search for victims on all nodes at once has the outcomes of removing pods and putting them back one by one."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.differential.random_objects.constraints import HOSTNAME, ZONE
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.preemption import (
    NAMESPACE,
    POLICY,
    PRIORITIES,
    random_budgets,
    random_preemptor,
    random_world,
)
from tests.oracles.plain_preemption import PlainPreemption
from tests.support.effort import examples
from tests.support.objects.storage import make_csi_node, make_pv, make_pvc, uses
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

Object = dict[str, Any]

CARD = "nvidia.com/gpu"
_PREEMPTORS = 4
_CLAIMS = ("claim-0", "claim-1", "alone")


@pytest.mark.parametrize("seed", range(examples(1000)))
def test_victims_are_those_of_the_plain_implementation(seed: int) -> None:
    dice = Dice(seed)
    world, budgets = random_world(dice, dice.choice((1, 2, 3, 5))), random_budgets(dice)
    objects, preemptors = [*world.objects], [random_preemptor(dice, f"new-{each}", "") for each in range(_PREEMPTORS)]
    if seed % 2:
        objects += _volumes(dice, world.nodes, world.pods)
        for each in preemptors:
            each["spec"]["volumes"] = uses(*dice.some(_CLAIMS, 1, 2))
        for each in dice.some(world.pods, 0, 2):
            each["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    if seed % 3 == 0:
        budgets += [_budget_of_tier(dice)]
        for each in (*world.pods, *preemptors):
            _constrain(dice, each, is_new=each in preemptors)
    if seed % 4 == 0:
        _make_short_of_cards_too(dice, world.nodes, (*world.pods, *preemptors))
    found = (Document("random", _with_priority(each)) for each in (*objects, *budgets))
    snapshot = snapshot_from_documents(found)
    for each in preemptors:
        signature, scheduler = PodSignature.of(_with_priority(each)), Scheduler()
        info = signature.info.normalized_for(snapshot)
        if info.preemption.is_never or scheduler.answer(signature, snapshot).feasible:
            continue
        _compare(PlainPreemption(info, snapshot), scheduler, signature)


def _compare(plain: PlainPreemption, scheduler: Scheduler, signature: PodSignature) -> None:
    found, possible = scheduler.preemption(signature, plain.snapshot), plain.possible()
    assert found is not None
    nodes, named = {each.node for each in possible}, {name for each in possible for name in each.victims}
    if "more orders than are tried" in found.why:
        assert {*found.nodes} >= nodes
        assert {each.name for each in found.victims} >= named
        return
    assert ({*found.nodes}, {each.name for each in found.victims}) == (nodes, named)
    assert found.is_exact == (len({(each.node, each.victims) for each in possible}) <= 1)
    counts = [len(each.victims) for each in possible] or [0]
    assert (found.least, found.most) == (min(counts), max(counts))


def _volumes(dice: Dice, nodes: tuple[Object, ...], pods: tuple[Object, ...]) -> Iterator[Object]:
    """Yield claims of some pods and those in `_CLAIMS`, some of which pods use, and low limits of some nodes."""
    names = [f"claim-{number}" for number in range(len(pods) + 2)]
    free = ["alone"]
    for pod in pods:
        if dice.chance(60):
            used = dice.some(names, 1, 2) + ([free.pop()] if free and dice.chance(20) else [])
            pod["spec"]["volumes"] = uses(*used)
    for name in (*names, "alone"):
        modes = ["ReadWriteOncePod"] if name == "alone" else ["ReadWriteMany"]
        claim = make_pvc(name, volume=name, accessModes=modes)
        claim["metadata"]["namespace"] = NAMESPACE
        yield claim
        yield make_pv(name, claimRef={"name": name, "namespace": NAMESPACE})
    for node in nodes:
        if dice.chance(80):
            yield make_csi_node(node["metadata"]["name"], disk=dice.randint(1, 4))


def _make_short_of_cards_too(dice: Dice, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
    """Give nodes and pods cards: of two pods, each can then be the larger one."""
    for each in nodes:
        cards = dice.choice(("2", "3", "4"))
        each["status"]["capacity"][CARD] = each["status"]["allocatable"][CARD] = cards
    for each in pods:
        resources = each["spec"]["containers"][0]["resources"]
        cards = dice.choice(("0", "1", "1", "2"))
        resources["requests"] |= {"cpu": dice.choice(("500m", "1", "2")), CARD: cards}
        resources["limits"] = {CARD: cards}


def _constrain(dice: Dice, pod: Object, *, is_new: bool) -> None:
    """Give `pod` a second label, and some of: host ports, anti-affinity, required affinity and topology spread."""
    spec, terms = pod["spec"], "requiredDuringSchedulingIgnoredDuringExecution"
    if dice.chance(50):
        pod["metadata"]["labels"]["tier"] = dice.choice("xy")
    if dice.chance(40):
        port = {"containerPort": 80, "hostPort": 80, "protocol": dice.choice(("TCP", "UDP"))}
        spec["containers"][0]["ports"] = [port | {"hostIP": dice.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2"))}]
    if dice.chance(30):
        spec["affinity"] = {"podAntiAffinity": {terms: [_term(dice) for _ in range(dice.randint(1, 3))]}}
    if is_new and dice.chance(30):
        spec["affinity"] = {**spec.get("affinity", {}), "podAffinity": {terms: [_term(dice)]}}
    if is_new and dice.chance(50):
        spec["topologySpreadConstraints"] = [_spread(dice) for _ in range(dice.randint(1, 2))]


def _selector(dice: Dice) -> Object:
    of_tier = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    return dice.choice(({"matchLabels": {"app": dice.choice("abc")}}, of_tier, {}))


def _term(dice: Dice) -> Object:
    term = {"labelSelector": _selector(dice), "topologyKey": dice.choice((HOSTNAME, ZONE))}
    return term | dice.choice(({}, {}, {"namespaceSelector": {}}, {"namespaces": ["other"]}))


def _spread(dice: Dice) -> Object:
    constraint: Object = {"maxSkew": dice.choice((1, 2)), "topologyKey": dice.choice((HOSTNAME, ZONE))}
    constraint |= {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": _selector(dice)}
    constraint |= dice.choice(({}, {}, {"minDomains": dice.randint(2, 4)}))
    policies = {"nodeAffinityPolicy": "Ignore"}, {"nodeTaintsPolicy": "Honor"}, {"matchLabelKeys": ["tier"]}
    return constraint | dice.choice(({}, *policies))


def _budget_of_tier(dice: Dice) -> Object:
    """Return a budget that can select the pods of other budgets."""
    metadata = {"name": "tier", "namespace": NAMESPACE}
    spec = {"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
    status = {"disruptionsAllowed": dice.randint(-1, 2)}
    return {"apiVersion": POLICY, "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": status}


def _with_priority(pod: Object) -> Object:
    """The object with the priority of its class, as the API server sets it."""
    name = pod.get("spec", {}).get("priorityClassName")
    return {**pod, "spec": {**pod["spec"], "priority": PRIORITIES.get(name, 100)}} if name else pod
