"""Required and preferred node affinity, as `RequireNode` and `PreferNode` edit it."""

from collections.abc import Iterator

from webhook.mutation.edits.editor import pointer
from webhook.mutation.edits.node_edits import PREFERRED_NODES, REQUIRED_NODE
from webhook.mutation.exported.cel import (
    Cel,
    add,
    added,
    append,
    concatenated,
    dyn_map,
    parents,
    text,
    texts,
    value_at,
    when,
)
from webhook.mutation.exported.variables import Variable, by_type, types_of
from webhook.policy.policy import Policy

_TERMS = (*REQUIRED_NODE, "nodeSelectorTerms")


def requirement(key: Cel, values: Cel) -> Cel:
    """Return the requirement that a label of nodes has one of `values`; both are expressions."""
    return dyn_map({"key": key, "operator": text("In"), "values": values})


def usage_requirement(policy: Policy) -> Cel:
    """Return the requirement on the node pool of the type."""
    allowed = by_type(((name, texts(each.node_usage.allow)) for name, each in types_of(policy)), "[]")
    return requirement(text(policy.node_usage_key), allowed)


def required_variables() -> Iterator[Variable]:
    """Yield the part of `variables.requirements` that each term of the pod lacks. An empty term stays empty."""
    present = "t.?matchExpressions.orValue([])"
    is_empty = f"{present}.size() == 0 && t.?matchFields.orValue([]).size() == 0"
    is_strict = 'e.operator == "In" && e.?values.orValue([]).size() > 0 && e.values.all(v, v in r.values)'
    lacks = f"variables.requirements.filter(r, !{present}.exists(e, e.key == r.key && {is_strict}))"
    yield "terms", f"{value_at(_TERMS)}.orValue([])"
    yield "lacking", f"variables.terms.map(t, {is_empty} ? [] : {lacks})"


def required_operations() -> Cel:
    """Return the operations that AND `variables.requirements` into every term, or add a term."""
    path = f'"{pointer(_TERMS)}/" + string(i) + "/matchExpressions"'
    # API servers from 1.37 on have typed objects here, which cannot be a value.
    copied = dyn_map({"key": "e.key", "operator": "e.operator", "values": "e.?values.orValue([]).map(v, v)"})
    value = f"variables.terms[i].?matchExpressions.orValue([]).map(e, {copied}) + lacking"
    into_terms = f"variables.lacking.transformList(i, lacking, lacking.size() > 0, {added(path, value)})"
    term = dyn_map({"nodeSelectorTerms": f"[{dyn_map({'matchExpressions': 'variables.requirements'})}]"})
    new = concatenated((parents(REQUIRED_NODE), add(REQUIRED_NODE, term)))
    return f"({value_at(REQUIRED_NODE)}.hasValue() ? {into_terms} : {new})"


def preferences(policy: Policy) -> Variable:
    """Return the preferred terms of the type."""
    key = text(policy.node_usage_key)
    listed = (
        (name, f"[{', '.join(_term(key, *each) for each in of_type.node_usage.preferences)}]")
        for name, of_type in types_of(policy)
    )
    return "preferences", by_type(listed, "[]")


def preferred_operations(policy: Policy) -> Cel:
    """Return the operations that append `variables.preferences`, unless the pod prefers node pools itself."""
    is_of_key = f"e.key == {text(policy.node_usage_key)}"
    names_pool = f"t.preference.?matchExpressions.orValue([]).exists(e, {is_of_key})"
    is_new = f"variables.preferences.size() > 0 && !{value_at(PREFERRED_NODES)}.orValue([]).exists(t, {names_pool})"
    return when(is_new, append("variables.preferences", PREFERRED_NODES, depth=len(PREFERRED_NODES) - 1))


def _term(key: Cel, value: str, weight: int) -> Cel:
    expressions = f"[{requirement(key, texts([value]))}]"
    return dyn_map({"weight": str(weight), "preference": dyn_map({"matchExpressions": expressions})})
