"""Scheduler and bin-packing, as `SetScheduler`, `AddLabel` and `PreferPodAffinity` edit them."""

from collections.abc import Iterator

from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.mutation.edits.editor import Path
from webhook.mutation.edits.edits import PREFERRED_PODS
from webhook.mutation.exported.cel import (
    Cel,
    add,
    add_missing,
    all_of,
    any_of,
    append,
    concatenated,
    dyn_map,
    negated,
    text,
    texts,
    value_at,
    when,
)
from webhook.mutation.exported.variables import Variable, by_type, has_any, types_of, value_of
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.workloads import WorkloadType

_SCHEDULER: Path = ("spec", "schedulerName")


def scheduler(policy: Policy) -> Iterator[Variable]:
    """Yield the scheduler that the pod names (empty for the default scheduler), and the one that the policy chooses."""
    name = f'{value_at(_SCHEDULER)}.orValue("")'
    yield "ownScheduler", f'({name} == {text(DEFAULT_SCHEDULER)} ? "" : {name})'
    yield "schedulerText", value_of(policy, Keys.scheduler)
    of_type = by_type(((name, text(each.scheduler_name or "")) for name, each in types_of(policy)), '""')
    named = "variables.schedulerText"
    yield "scheduler", f"({named} in {texts(policy.spec.allowed_schedulers)} ? {named} : {of_type})"


def scheduler_operations() -> Cel:
    """Return the operations that set the scheduler."""
    is_new = 'variables.scheduler != "" && variables.ownScheduler == ""'
    differs = f"variables.scheduler != {text(DEFAULT_SCHEDULER)}"
    return when(all_of((is_new, differs)), add(_SCHEDULER, "variables.scheduler"))


def packing(policy: Policy) -> Iterator[Variable]:
    """Yield whether the pod is packed. A pod that may be spread over the same topology is left to the webhook."""
    yield "packText", value_of(policy, Keys.bin_packing)
    packed = texts(name for name, each in types_of(policy) if each.bin_packing and not may_undo_packing(policy, each))
    is_on = f'(variables.packText in ["true", "false"] ? variables.packText == "true" : variables.type in {packed})'
    yield "isPacked", all_of((is_on, negated(has_any([policy.keys.spread])), _has_hint(policy)))


def may_undo_packing(policy: Policy, of_type: WorkloadType) -> bool:
    """Return whether the spreading of the type `of_type` may conflict with the packing of its pods."""
    named = of_type.spread.topology
    key = None if named is None else policy.spec.topology_aliases.get(named, named)
    return of_type.spread.mode == "preferred" and key == policy.spec.bin_packing.topology_key


def _has_hint(policy: Policy) -> Cel:
    without = [name for name, each in policy.spec.schedulers.items() if not each.bin_packing_hint]
    if not without:
        return "true"
    chosen = '(variables.ownScheduler == "" ? variables.scheduler : variables.ownScheduler)'
    return f"!({chosen} in {texts([*without, *([''] if DEFAULT_SCHEDULER in without else [])])})"


def packing_operations(policy: Policy) -> Cel:
    """Return the operations that add the label and the preferred pod affinity of packed pods."""
    settings = policy.spec.bin_packing
    add_label = add_missing(("metadata", "labels", settings.label_key), text(settings.label_value))
    requirement = {"key": text(settings.label_key), "operator": '"In"', "values": texts([settings.label_value])}
    term = {
        "labelSelector": dyn_map({"matchExpressions": f"[{dyn_map(requirement)}]"}),
        **({"namespaceSelector": "dyn({})"} if settings.namespaces == "all" else {}),
        "topologyKey": text(settings.topology_key),
    }
    weighted = dyn_map({"weight": str(settings.weight), "podAffinityTerm": dyn_map(term)})
    is_present = f"{value_at(PREFERRED_PODS)}.orValue([]).exists(w, {_is_hint(policy, 'w.podAffinityTerm')})"
    add_term = when(f"!{is_present}", append(f"[{weighted}]", PREFERRED_PODS, depth=2))
    return when("variables.isPacked", concatenated((add_label, add_term)))


def _is_hint(policy: Policy, term: Cel) -> Cel:
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
