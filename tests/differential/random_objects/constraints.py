"""Random constraints of pods, over so few names and values that they meet; all are valid to the API server."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.differential.random_objects.dice import Dice

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"
TOPOLOGY_KEYS = (HOSTNAME, ZONE, RACK, "use")
NODE_LABELS = {
    ZONE: ("z1", "z2", "z3"),
    RACK: ("r1", "r2", "r3", "r4"),
    "use": ("training", "inference", "hybrid"),
    "cards": ("2", "4", "8", "016", "many"),
    "product": ("H20", "A100"),
}
POD_LABELS = {"app": ("web", "db", "trainer"), "tier": ("front", "back"), "job": ("a", "b")}
REVISION_LABELS = {"pod-template-hash": ("h1", "h2"), "tenant": ("t1", "t2")}
NAMESPACE_LABELS = {"team": ("red", "blue"), "env": ("prod", "test")}
TAINT_VALUES = {
    "use": ("training", "inference"),
    "product": ("H20", "A100"),
    "broken": ("",),
    "cards": ("4", "8"),
    "node.kubernetes.io/not-ready": ("",),
}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def labels(dice: Dice, vocabulary: Mapping[str, tuple[str, ...]], percent: float) -> dict[str, str]:
    """Return a value of each label, each there `percent` of the time."""
    return {key: dice.choice(values) for key, values in vocabulary.items() if dice.chance(percent)}


def tolerations(dice: Dice) -> list[Object]:
    """Up to three tolerations; now and then one of everything."""
    if dice.chance(15):
        return [{"operator": "Exists"}]
    found = []
    for key in dice.some((*TAINT_VALUES, _UNSCHEDULABLE), 1, 3):
        toleration: Object = {"key": key}
        if dice.chance(50) or key == _UNSCHEDULABLE:
            toleration["operator"] = "Exists"
        else:
            toleration |= {"value": dice.choice(TAINT_VALUES[key])} | ({"operator": "Equal"} if dice.chance(50) else {})
        if dice.chance(60):
            toleration["effect"] = dice.choice(EFFECTS)
        if toleration.get("effect") == "NoExecute" and dice.chance(30):
            toleration["tolerationSeconds"] = 300
        found.append(toleration)
    return found


def node_selector(dice: Dice) -> dict[str, str]:
    """Return a label of nodes or two."""
    return {key: dice.choice(NODE_LABELS[key]) for key in dice.some((ZONE, "use", "product"), 1, 2)}


def node_affinity(dice: Dice, node_names: Sequence[str]) -> Object:
    """Required terms, preferred ones, or both."""
    affinity: Object = {}
    if dice.chance(60):
        terms = [_node_term(dice, node_names, required=True) for _ in range(dice.randint(1, 3))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if not affinity or dice.chance(50):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.randint(1, 100), "preference": _node_term(dice, node_names, required=False)}
            for _ in range(dice.randint(1, 4))
        ]
    return affinity


def _node_term(dice: Dice, node_names: Sequence[str], *, required: bool) -> Object:
    term: Object = {}
    if dice.chance(85):
        expressions = [_node_requirement(dice, node_names, required=required) for _ in range(dice.randint(1, 2))]
        term["matchExpressions"] = expressions
    if dice.chance(15):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": dice.choice(("In", "In", "NotIn")),
                "values": [dice.choice(node_names)],
            }
            for _ in range(1 if dice.chance(80) else 2)
        ]
    return term


def _node_requirement(dice: Dice, node_names: Sequence[str], *, required: bool) -> Object:
    operator = dice.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        # kube-scheduler gives a pod up for a preferred value that is no number.
        bounds = ("3", "4", "9", "007", "many") if required else ("3", "4", "9", "007")
        return {"key": "cards", "operator": operator, "values": [dice.choice(bounds)]}
    key = dice.choice((*NODE_LABELS, "absent", HOSTNAME))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = node_names if key == HOSTNAME else NODE_LABELS.get(key, ("x",))
    return {"key": key, "operator": operator, "values": dice.some(values, 1, 3)}


def label_selector(dice: Dice) -> Object | None:
    """Return a selector of pods: none at all, one of everything, or some requirements."""
    form = dice.randint(0, 9)
    if form == 0:
        return None
    if form == 1:
        return {}
    if form < 6:
        return {"matchLabels": {key: dice.choice(POD_LABELS[key]) for key in dice.some(tuple(POD_LABELS), 1, 2)}}
    return {"matchExpressions": [_label_requirement(dice, POD_LABELS) for _ in range(dice.randint(1, 2))]}


def _label_requirement(dice: Dice, vocabulary: Mapping[str, tuple[str, ...]]) -> Object:
    key, operator = dice.choice(tuple(vocabulary)), dice.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    values = {"values": dice.some(vocabulary[key], 1, 2)} if operator in ("In", "NotIn") else {}
    return {"key": key, "operator": operator, **values}


def pod_affinity(dice: Dice, namespaces: Sequence[str], percent_required: float) -> Object:
    """Attraction to pods, aversion from pods, or both; `percent_required` of their parts are required ones."""
    affinity: Object = {}
    for kind in dice.some(("podAffinity", "podAntiAffinity"), 1, 2):
        part: Object = {}
        if dice.chance(percent_required):
            terms = [pod_term(dice, namespaces) for _ in range(1 if dice.chance(75) else 2)]
            part["requiredDuringSchedulingIgnoredDuringExecution"] = terms
        if not part or dice.chance(40):
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": dice.randint(1, 100), "podAffinityTerm": pod_term(dice, namespaces)}
                for _ in range(dice.randint(1, 3))
            ]
        affinity[kind] = part
    return affinity


def pod_term(dice: Dice, namespaces: Sequence[str]) -> Object:
    """Return one PodAffinityTerm."""
    term: Object = {"topologyKey": dice.choice(TOPOLOGY_KEYS)}
    if (selector := label_selector(dice)) is not None:
        term["labelSelector"] = selector
        for field, key in (("matchLabelKeys", "pod-template-hash"), ("mismatchLabelKeys", "tenant")):
            if dice.chance(12):
                term[field] = [key]
    if dice.chance(25):
        term["namespaces"] = dice.some((*namespaces, "elsewhere"), 1, 2)
    if dice.chance(30):
        form = dice.randint(0, 2)
        wanted = [_label_requirement(dice, NAMESPACE_LABELS)]
        matching = {"matchLabels": labels(dice, NAMESPACE_LABELS, 60)}
        term["namespaceSelector"] = ({}, matching, {"matchExpressions": wanted})[form]
    return term


def spread_constraints(dice: Dice) -> list[Object]:
    """Up to three TopologySpreadConstraints; the API server wants each key once for each thing to do."""
    pairs = [(key, what) for key in TOPOLOGY_KEYS for what in ("DoNotSchedule", "ScheduleAnyway")]
    return [_spread_constraint(dice, key, what) for key, what in dice.some(pairs, 1, 3 if dice.chance(30) else 2)]


def _spread_constraint(dice: Dice, key: str, what: str) -> Object:
    constraint: Object = {"maxSkew": dice.choice((1, 1, 2, 3, 5)), "topologyKey": key, "whenUnsatisfiable": what}
    if (selector := label_selector(dice)) is not None:
        constraint["labelSelector"] = selector
        if dice.chance(15):
            constraint["matchLabelKeys"] = dice.some(tuple(REVISION_LABELS), 1, 2)
    if what == "DoNotSchedule" and dice.chance(25):
        constraint["minDomains"] = dice.randint(1, 5)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if dice.chance(35):
            constraint[policy] = dice.choice(("Honor", "Ignore"))
    return constraint
