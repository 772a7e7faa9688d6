"""Required and preferred node affinity, as `RequireNode` and `PreferNode` edit it."""

from collections.abc import Iterator

from webhook.mutation.edits.editor import pointer
from webhook.mutation.edits.node_edits import PREFERRED_NODES, REQUIRED_NODE
from webhook.mutation.exported.cel import (
    Cel,
    add,
    all_of,
    any_of,
    append,
    concatenated,
    dyn_map,
    json_patch,
    parents,
    text,
    texts,
    value_at,
    when,
)
from webhook.mutation.exported.variables import Variable, by_type, types_of
from webhook.policy.policy import Policy

_TERMS = (*REQUIRED_NODE, "nodeSelectorTerms")
_MOST_INT64 = "9223372036854775807"


def requirement(key: Cel, operator: str, values: Cel | None = None) -> Cel:
    """Return a requirement on a label of nodes; `key` and `values` are expressions."""
    fields = {"key": key, "operator": text(operator)}
    return dyn_map(fields if values is None else {**fields, "values": values})


def _is_integer(value: Cel) -> Cel:
    """Return whether the text is an integer of 64 bits, as Gt and Lt compare them."""
    digits = f'{value}.find("[1-9][0-9]*$")'
    most = f'{digits} <= ({value}.startsWith("-") ? "9223372036854775808" : "{_MOST_INT64}")'
    is_in_range = f"({digits}.size() < 19 || ({digits}.size() == 19 && {most}))"
    return f'({value}.matches("^[+-]?[0-9]{{1,64}}$") && {is_in_range})'


def _values(expression: Cel) -> Cel:
    return f"{expression}.?values.orValue([])"


def is_implied(expression: Cel, wanted: Cel) -> Cel:
    """Return whether the user's `expression` is at least as strict as the requirement `wanted`."""
    values, bound = _values(expression), f"{wanted}.values[0]"
    is_above = f"{_is_integer('v')} && int(v) > int({bound})"
    of_in = (
        f'({values}.size() > 0 && ({wanted}.operator == "In" ? {values}.all(v, v in {wanted}.values) : '
        f'{wanted}.operator == "NotIn" ? !{values}.exists(v, v in {wanted}.values) : '
        f'{wanted}.operator == "Exists" || {values}.all(v, {is_above})))'
    )
    compared = f'({expression}.operator == "Gt" ? int(v) > int({values}[0]) : int(v) < int({values}[0]))'
    is_bound = f"{values}.size() == 1 && {_is_integer(f'{values}[0]')}"
    of_not_in = (
        f'({expression}.operator == "NotIn" ? {wanted}.values.all(v, v in {values}) : '
        f'{expression}.operator in ["Gt", "Lt"] ? '
        f"!({is_bound} && {wanted}.values.exists(v, {_is_integer('v')} && {compared})) : "
        f'{expression}.operator == "DoesNotExist")'
    )
    of_gt = (
        f'({expression}.operator == "Gt" && {values}.size() == 1 && '
        f"({values}[0] == {bound} || {values}.all(v, {is_above})))"
    )
    return (
        f'({expression}.key == {wanted}.key && ({expression}.operator == "In" ? {of_in} : '
        f'{wanted}.operator == "NotIn" ? {of_not_in} : '
        f'{wanted}.operator == "Exists" ? {expression}.operator in ["Exists", "Gt", "Lt"] : '
        f'{wanted}.operator == "Gt" && {of_gt}))'
    )


def required_variables() -> Iterator[Variable]:
    """Yield what each term of the pod lacks of `variables.requirements`; an empty term stays empty."""
    present = "t.?matchExpressions.orValue([])"
    is_empty = f"{present}.size() == 0 && t.?matchFields.orValue([]).size() == 0"
    lacks = f"variables.requirements.filter(r, !{present}.exists(e, {is_implied('e', 'r')}))"
    yield "terms", f"{value_at(_TERMS)}.orValue([])"
    yield "lacking", f"variables.terms.map(t, {is_empty} ? [] : {lacks})"


def required_operations() -> Cel:
    """Return the operations that AND `variables.requirements` into every term, or add a term."""
    path = f'"{pointer(_TERMS)}/" + string(i) + "/matchExpressions"'
    # API servers from 1.37 on have typed objects here, which cannot be a value.
    copied = dyn_map({"key": "e.key", "operator": "e.operator", "values": f"{_values('e')}.map(v, v)"})
    value = f"variables.terms[i].?matchExpressions.orValue([]).map(e, {copied}) + lacking"
    into_terms = f"variables.lacking.transformList(i, lacking, lacking.size() > 0, {json_patch('add', path, value)})"
    term = dyn_map({"nodeSelectorTerms": f"[{dyn_map({'matchExpressions': 'variables.requirements'})}]"})
    new = concatenated((parents(REQUIRED_NODE), add(REQUIRED_NODE, term)))
    return f"({value_at(REQUIRED_NODE)}.hasValue() ? {into_terms} : {new})"


def preferences(policy: Policy) -> int:
    """Return the largest number of preferences that a type has."""
    return max(len(each.node_usage.prefer) for _, each in types_of(policy))


def _alone(term: Cel, value: Cel, key: str) -> Cel:
    """Return whether the preferred `term` has one requirement: that the label `key` has this value."""
    expressions = f"{term}.preference.?matchExpressions.orValue([])"
    is_value = f'e.key == {text(key)} && e.operator == "In" && {_values("e")}.size() > 0'
    is_only = f"{term}.preference.?matchFields.orValue([]).size() == 0 && {expressions}.size() == 1"
    return f"({is_only} && {expressions}.exists(e, {is_value} && {_values('e')}.all(v, v == {value})))"


def preferred_variables(policy: Policy) -> Iterator[Variable]:
    """Yield the preferences of the type, the pod's preferred terms, and how many of ours these begin with."""
    listed = (
        (name, f"[{', '.join(_preference(*each) for each in of_type.node_usage.preferences)}]")
        for name, of_type in types_of(policy)
    )
    yield "preferences", by_type(listed, "[]")
    yield "preferred", f"{value_at(PREFERRED_NODES)}.orValue([])"
    is_present = f"t.weight == p.weight && {_alone('t', 'p.value', policy.node_usage_key)}"
    yield "present0", f"variables.preferences.map(p, variables.preferred.exists(t, {is_present}))"
    for index in range(preferences(policy)):
        # Each preference is compared with the terms of the pod, and with those that are added before it.
        if index:
            before = f"variables.present{index - 1}"
            yield (
                f"present{index}",
                f"{before}.transformList(i, p, p || (i == {index - 1} && variables.new{index - 1}))",
            )
        first = f"variables.present{index}.indexOf(false)"
        yield f"added{index}", f"({first} < 0 ? variables.preferences.size() : {first})"
        yield f"new{index}", _is_new(policy, index)
    terms = (when(f"variables.new{index}", f"[{_term(policy, index)}]") for index in range(preferences(policy)))
    yield "newPreferred", concatenated(terms)


def _preference(value: str, weight: int) -> Cel:
    return dyn_map({"weight": str(weight), "value": text(value)})


def _is_new(policy: Policy, index: int) -> Cel:
    """Return whether the preference `index` of the type is added: the user does not prefer other values."""
    key, wanted = policy.node_usage_key, f"variables.preferences[{index}]"
    expressions = "t.?preference.?matchExpressions.orValue([])"
    implies = f'e.operator == "In" && {_values("e")}.size() > 0 && {_values("e")}.all(v, v == {wanted}.value)'
    of_key = f"e.key == {text(key)}"
    contradicts = f"{expressions}.exists(e, {of_key}) && !{expressions}.exists(e, {of_key} && {implies})"
    is_own = f"t.weight == p.weight && {_alone('t', 'p.value', key)}"
    of_policy = f"variables.preferences.transformList(j, p, j < variables.added{index}, p).exists(p, {is_own})"
    kept = f"{contradicts} && !{of_policy}"
    # A term that was added after a gap counts as one of the user.
    after_gap = (f"!(variables.new{before} && {before} >= variables.added{index})" for before in range(index))
    return all_of(
        (
            f"variables.preferences.size() > {index}",
            f"!variables.preferred.exists(t, {any_of((_alone('t', f'{wanted}.value', key), f'({kept})'))})",
            *after_gap,
        )
    )


def _term(policy: Policy, index: int) -> Cel:
    wanted = f"variables.preferences[{index}]"
    expression = requirement(text(policy.node_usage_key), "In", f"[{wanted}.value]")
    return dyn_map({"weight": f"{wanted}.weight", "preference": dyn_map({"matchExpressions": f"[{expression}]"})})


def preferred_operations() -> Cel:
    """Return the operations that append the preferences, after those of `required_operations`."""
    return when(
        "variables.newPreferred.size() > 0",
        append("variables.newPreferred", PREFERRED_NODES, depth=len(PREFERRED_NODES) - 1),
    )


def usage_requirement(policy: Policy) -> Cel:
    """Return the requirement on the node pool of the type."""
    allowed = by_type(((name, texts(each.node_usage.allow)) for name, each in types_of(policy)), "[]")
    return requirement(text(policy.node_usage_key), "In", allowed)
