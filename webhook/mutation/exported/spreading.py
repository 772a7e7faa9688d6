"""Bin-packing and spreading, as `AddLabel`, `PreferPodAffinity` and the edits of spreading do it."""

from collections.abc import Iterator

from webhook.mutation.edits.edits import PREFERRED, PREFERRED_PODS
from webhook.mutation.edits.scheduling_edits import CONSTRAINTS, REQUIRED
from webhook.mutation.exported.cel import (
    LABEL_VALUE,
    Cel,
    add,
    add_missing,
    all_of,
    any_of,
    append,
    choose,
    concatenated,
    dyn_map,
    text,
    texts,
    value_at,
    when,
)
from webhook.mutation.exported.scheduling import batch_labels, packing_hint_schedulers, value_when_packed
from webhook.mutation.exported.variables import Variable, by_type, types_of, value_of
from webhook.mutation.replica_group import OWNER_LABELS
from webhook.policy.keys import NO_TOPOLOGY, Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.schedulers import Spread
from webhook.policy.spec.workloads import WorkloadType

_ANTI_AFFINITY = ("spec", "affinity", "podAntiAffinity")
_DNS = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TOPOLOGY_KEY = f"^{_DNS}([.]{_DNS})*/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_LONGEST_PREFIX = 253


def topology(policy: Policy) -> Iterator[Variable]:
    """Yield the topology key over which the annotation or the type spreads the pod. It is empty if neither does."""
    yield "spreadText", value_of(policy, Keys.spread)
    given = "variables.spreadText"
    aliases = choose(
        ((f"{given} == {text(alias)}", text(key)) for alias, key in policy.spec.topology_aliases.items()), '""'
    )
    is_key = f'{given}.matches({text(_TOPOLOGY_KEY)}) && {given}.indexOf("/") <= {_LONGEST_PREFIX}'
    is_alias = f"{given} in {texts(policy.spec.topology_aliases)}"
    yield "spreadKey", f'({is_alias} ? {aliases} : {is_key} ? {given} : "")'
    of_type = by_type(((name, text(_key_of(each, policy))) for name, each in types_of(policy)), '""')
    is_off = f"{given} == {text(NO_TOPOLOGY)} && !({is_alias})"
    yield "topology", f'({is_off} ? "" : variables.spreadKey != "" ? variables.spreadKey : {of_type})'


def _key_of(of_type: WorkloadType, policy: Policy) -> str:
    named = of_type.spread.topology
    return "" if named is None else policy.spec.topology_aliases.get(named, named)


def group(policy: Policy) -> Iterator[Variable]:
    """Yield key and value of the label that selects the replicas (or empty), and whether the webhook adds it.

    The hash of an owner with a long name cannot be expressed, so such a pod is not spread.
    """
    added = policy.spread_group_label
    is_group = f'variables.labels[?k].orValue("").matches({text(LABEL_VALUE)})'
    keys = texts((added, *OWNER_LABELS))
    yield "groupKeys", f"{keys}.filter(k, {is_group})"
    owners = "object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))"
    yield "owners", f'{owners}.map(o, o.kind + "." + o.name)'
    is_name = f"variables.owners.size() > 0 && variables.owners[0].matches({text(LABEL_VALUE)})"
    yield "ownerGroup", f'({is_name} ? variables.owners[0] : "")'
    own = f'variables.ownerGroup == "" ? "" : {text(added)}'
    yield "groupKey", f"(variables.groupKeys.size() > 0 ? variables.groupKeys[0] : {own})"
    value = "variables.labels[variables.groupKeys[0]]"
    yield "group", f"(variables.groupKeys.size() > 0 ? {value} : variables.ownerGroup)"
    yield "hasGroup", "variables.groupKeys.size() > 0 || variables.owners.size() > 0"


def packing(policy: Policy) -> Iterator[Variable]:
    """Yield whether the pod is spread, and whether it is packed."""
    pack = "variables.packText"
    settings = policy.spec.bin_packing
    preferred = [name for name, each in types_of(policy) if each.spread.mode == "preferred"]
    is_undone = all_of(
        (f"variables.topology == {text(settings.topology_key)}", f"variables.type in {texts(preferred)}")
    )
    yield "isUndone", is_undone
    keeps = f'!({pack} == "true" && variables.isUndone && variables.spreadKey == "")'
    yield "isSpread", f'variables.topology != "" && variables.hasGroup && {keeps}'
    packed = texts(name for name, each in types_of(policy) if each.bin_packing)
    is_on = f'({pack} in ["true", "false"] ? {pack} == "true" : variables.type in {packed})'
    wins = "!(variables.isSpread && variables.isUndone)"
    yield "isPacked", all_of((is_on, packing_hint_schedulers(policy), wins))


def packing_operations(policy: Policy) -> Cel:
    """Return the operations that add the label and the preferred pod affinity of packed pods."""
    settings = policy.spec.bin_packing
    label = ("metadata", "labels", settings.label_key)
    add_label = add_missing(label, text(settings.label_value))
    requirement = dyn_map(
        {"key": text(settings.label_key), "operator": '"In"', "values": texts([settings.label_value])}
    )
    everywhere = {"namespaceSelector": "dyn({})"} if settings.namespaces == "all" else {}
    term = dyn_map(
        {
            "labelSelector": dyn_map({"matchExpressions": f"[{requirement}]"}),
            **everywhere,
            "topologyKey": text(settings.topology_key),
        }
    )
    weighted = dyn_map({"weight": str(settings.weight), "podAffinityTerm": term})
    is_present = f"{value_at(PREFERRED_PODS)}.orValue([]).exists(w, {is_hint(policy, 'w.podAffinityTerm')})"
    add_term = when(f"!{is_present}", append(f"[{weighted}]", PREFERRED_PODS, depth=2))
    return when("variables.isPacked", concatenated((add_label, add_term)))


def is_hint(policy: Policy, term: Cel) -> Cel:
    """Return whether a term of pod affinity is for the packed pods, over the topology of packing."""
    settings = policy.spec.bin_packing
    key, value = text(settings.label_key), text(settings.label_value)
    expressions = f"{term}.?labelSelector.?matchExpressions.orValue([])"
    labels = f"{term}.?labelSelector.?matchLabels.orValue({{}})"
    values = "e.?values.orValue([])"
    is_in = f'e.key == {key} && e.operator == "In" && {values}.size() > 0 && {values}.all(v, v == {value})'
    by_expression = f"({labels}.size() == 0 && {expressions}.size() == 1 && {expressions}.exists(e, {is_in}))"
    by_label = f'({expressions}.size() == 0 && {labels}.size() == 1 && {labels}[?{key}].orValue("") == {value})'
    selector = f"{term}.?namespaceSelector"
    if settings.namespaces == "all":
        everywhere = f"({selector}.hasValue() && {selector}.orValue({{}}).size() == 0)"
    else:
        everywhere = f"(!{selector}.hasValue() && {term}.?namespaces.orValue([]).size() == 0)"
    narrowed = (f"{term}.?{each}.orValue([]).size() == 0" for each in ("matchLabelKeys", "mismatchLabelKeys"))
    is_over = f"{term}.topologyKey == {text(settings.topology_key)}"
    return all_of((is_over, any_of((by_expression, by_label)), everywhere, *narrowed))


def spread_variables(policy: Policy) -> Iterator[Variable]:
    """Yield whether the user has settled the spreading over the topology, and the forms in which it is present."""
    over = ".topologyKey == variables.topology"
    constraints = f"{value_at(CONSTRAINTS)}.orValue([]).exists(c, c{over})"
    terms = [f"{_terms('podAntiAffinity', REQUIRED)}.exists(c, c{over})"]
    terms += [f"{_terms('podAntiAffinity', PREFERRED)}.exists(c, c.podAffinityTerm{over})"]
    attracted = [
        f"{_terms('podAffinity', REQUIRED)}.exists(c, {_attracts(policy, 'c')})",
        f"{_terms('podAffinity', PREFERRED)}.exists(c, {_attracts(policy, 'c.podAffinityTerm')})",
    ]
    yield "labelsBefore", _labels_before(policy)
    yield "isSettled", any_of((constraints, *terms, *attracted))
    selector = dyn_map({"matchLabels": "{variables.groupKey: variables.group}"})
    yield "spreadTerm", dyn_map({"labelSelector": selector, "topologyKey": "variables.topology"})
    for name, form in (("AntiAffinity", "antiAffinity"), ("Constraint", "topologySpread")):
        found = ((of, _is_present(each.spread)) for of, each in types_of(policy) if each.spread.form == form)
        yield f"has{name}", by_type(found, "false")
    is_present = "(variables.hasAntiAffinity || variables.hasConstraint)"
    yield "spreads", f'variables.isSpread && variables.group != "" && ({is_present} || !variables.isSettled)'
    yield "spreadIsNew", f"variables.spreads && !{is_present}"


def _labels_before(policy: Policy) -> Cel:
    """Return the labels of the pod with those that are added before it is spread."""
    packing = policy.spec.bin_packing
    is_new = f"variables.isPacked && !({text(packing.label_key)} in variables.labels)"
    added = [(is_new, text(packing.label_key), text(packing.label_value)), *batch_labels(policy)]
    pairs = (when(condition, f"[[{key}, {value}]]") for condition, key, value in added)
    own = "variables.labels.transformList(k, v, [k, v])"
    return f"{concatenated((own, *pairs))}.transformMapEntry(i, e, {{e[0]: e[1]}})"


def _attracts(policy: Policy, term: Cel) -> Cel:
    """Return whether a term of pod affinity draws the pod to others like it; the packing hint does not count."""
    labels = f"{term}.labelSelector.?matchLabels.orValue({{}})"
    are_equal = f"{labels}.all(k, k in variables.labelsBefore && variables.labelsBefore[k] == {labels}[k])"
    are_met = f"{term}.labelSelector.?matchExpressions.orValue([]).all(e, {_selects('e')})"
    return all_of(
        (
            f"{term}.topologyKey == variables.topology",
            f"!{is_hint(policy, term)}",
            f"{term}.?labelSelector.hasValue()",
            are_equal,
            are_met,
        )
    )


def _selects(expression: Cel) -> Cel:
    """Return whether the labels of the pod meet an expression of a label selector."""
    key, values = f"{expression}.key in variables.labelsBefore", f"{expression}.?values.orValue([])"
    is_value = f"({key} && variables.labelsBefore[{expression}.key] in {values})"
    return (
        f'({expression}.operator == "In" ? {is_value} : {expression}.operator == "NotIn" ? '
        f'({values}.size() > 0 && !{is_value}) : {expression}.operator == "Exists" ? '
        f'({values}.size() == 0 && {key}) : ({expression}.operator == "DoesNotExist" && {values}.size() == 0 && '
        f"!({key})))"
    )


def _terms(kind: str, when_: str) -> Cel:
    return f"{value_at(('spec', 'affinity', kind, when_))}.orValue([])"


def _constraint(settings: Spread) -> Cel:
    when_unsatisfiable = "ScheduleAnyway" if settings.mode == "preferred" else "DoNotSchedule"
    return dyn_map(
        {
            "maxSkew": str(settings.max_skew),
            "topologyKey": "variables.topology",
            "whenUnsatisfiable": text(when_unsatisfiable),
            "labelSelector": dyn_map({"matchLabels": "{variables.groupKey: variables.group}"}),
            "nodeTaintsPolicy": '"Honor"',
        }
    )


def _is_present(settings: Spread) -> Cel:
    if settings.form == "topologySpread":
        return f"{value_at(CONSTRAINTS)}.orValue([]).exists(c, c == {_constraint(settings)})"
    if settings.mode == "required":
        return f"{_terms('podAntiAffinity', REQUIRED)}.exists(c, c == variables.spreadTerm)"
    return f"{_terms('podAntiAffinity', PREFERRED)}.exists(c, c.podAffinityTerm == variables.spreadTerm)"


def _added(settings: Spread) -> Cel:
    if settings.form == "topologySpread":
        return append(f"[{_constraint(settings)}]", CONSTRAINTS)
    if settings.mode == "required":
        return append("[variables.spreadTerm]", (*_ANTI_AFFINITY, REQUIRED), depth=2)
    weighted = dyn_map({"weight": str(settings.weight), "podAffinityTerm": "variables.spreadTerm"})
    return append(f"[{weighted}]", (*_ANTI_AFFINITY, PREFERRED), depth=2)


def spread_operations(policy: Policy) -> Cel:
    """Return the operations that spread the pod over the topology, and add the label of its group if there is none."""
    added = by_type(((name, _added(each.spread)) for name, each in types_of(policy)), "[]")
    label = ("metadata", "labels", policy.spread_group_label)
    is_new = (
        f"variables.groupKey == {text(policy.spread_group_label)} && !{value_when_packed(policy, label)}.hasValue()"
    )
    labelled = when(is_new, add(label, "variables.group"))
    return when("variables.spreads", concatenated((when("variables.spreadIsNew", added), labelled)))
