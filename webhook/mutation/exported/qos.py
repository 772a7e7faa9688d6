"""The QoS class Guaranteed: amounts that follow from others, and what a pod lacks, as CEL."""

from collections.abc import Iterator

from webhook.mutation.exported.cel import Cel, any_of, concatenated, dyn_map, json_patch, text, when
from webhook.mutation.exported.variables import Variable, is_type, types_of
from webhook.mutation.workload.guaranteed_qos import MOST_REPORTED
from webhook.policy.policy import Policy
from webhook.policy.spec.workloads import WorkloadType

_COMPUTE = ("cpu", "memory")


def _guaranteed(policy: Policy) -> list[tuple[str, WorkloadType]]:
    return [(name, each) for name, each in types_of(policy) if each.qos.class_ is not None]


def asks_for_class(policy: Policy) -> bool:
    """Return whether a type asks for a QoS class."""
    return bool(_guaranteed(policy))


def parts(policy: Policy) -> Iterator[Variable]:
    """Yield the resources that decide on the class: those of the containers, or of the pod if it has any.

    The API server has set a missing request of a container to the limit, and those of the pod before a policy applies.
    """
    yield "guaranteed", is_type([name for name, _ in _guaranteed(policy)])
    fills = [name for name, each in _guaranteed(policy) if each.qos.limits_from_requests]
    yield "fillsLimits", is_type(fills) if fills else "false"
    found = concatenated(
        f"object.spec.?{field}.orValue([]).transformList(i, c, {_part(field)})"
        for field in ("initContainers", "containers")
    )
    own = _part_of('"/spec/resources"', '"spec.resources"', "object.spec.resources", '""')
    yield "parts", f"(has(object.spec.resources) ? [{own}] : {found})"


def _part(field: str) -> Cel:
    place = f'"/spec/{field}/" + string(i) + "/resources"'
    shown = f'"spec.{field}[" + string(i) + "].resources"'
    return _part_of(place, shown, "c.?resources.orValue({})", "c.name")


def _part_of(place: Cel, shown: Cel, resources: Cel, name: Cel) -> Cel:
    return dyn_map({"place": place, "shown": shown, "resources": resources, "name": name})


def _amount(kind: str, name: str) -> Cel:
    """Return the optional amount of a part `p` as text; an amount of zero counts as none."""
    value = f'p.resources.?{kind}[?"{name}"].orValue("0")'
    return f'(quantity({value}).compareTo(quantity("0")) > 0 ? {value} : "")'


def limit_operations() -> Cel:
    """Return the operations that set missing limits to the requests."""
    lacks = {name: f'({_amount("limits", name)} == "" && {_amount("requests", name)} != "")' for name in _COMPUTE}
    parent = json_patch("add", 'p.place + "/limits"', "dyn({})")
    needs = f"!p.resources.?limits.hasValue() && {any_of(lacks.values())}"
    lists = [f"variables.parts.filter(p, {needs}).map(p, {parent})"]
    for name, lacks_it in lacks.items():
        path, value = f"p.place + {text('/limits/' + name)}", f"p.resources.requests[{text(name)}]"
        is_new = f"{lacks_it} && !p.resources.?limits[?{text(name)}].hasValue()"
        lists.append(f"variables.parts.filter(p, {is_new}).map(p, {json_patch('add', path, value)})")
    return when("variables.fillsLimits", concatenated(lists))


def is_effective() -> Cel:
    """Return whether the rule Guaranteed has amounts, be they set already."""
    of_part = any_of(
        f'({_amount("limits", name)} != "" ? {_same(name)} : '
        f'{_amount("requests", name)} != "" && variables.fillsLimits)'
        for name in _COMPUTE
    )
    return f"variables.guaranteed && variables.parts.exists(p, {of_part})"


def _same(name: str) -> Cel:
    limit, request = _amount("limits", name), _amount("requests", name)
    return f'({request} != "" && quantity({limit}).compareTo(quantity({request})) == 0)'


def denied_gaps(policy: Policy) -> Iterator[Variable]:
    """Yield the texts of what the pod lacks for its class, for types that deny such a pod."""
    denying = {name: each for name, each in _guaranteed(policy) if each.qos.on_missing == "deny"}
    if not denying:
        yield "gaps", "[]"
        return
    of_part = []
    for name in _COMPUTE:
        limit, request = _amount("limits", name), _amount("requests", name)
        lacks = f'{limit} == "" && !({request} != "" && variables.fillsLimits)'
        less = f'{limit} != "" && !{_same(name)}'
        of_part.append(when(lacks, _gap(f"limits.{name}", f" has no {name} limit, but")))
        of_part.append(when(less, _gap(f"requests.{name}", f" requests less {name} than its limit, but")))
    joined = f'variables.parts.map(p, {concatenated(of_part)}.join("\\n")).join("\\n")'
    found = [f'{joined}.split("\\n").filter(g, g != "")']
    whole = [name for name, each in denying.items() if each.qos.whole_cpus]
    if whole:
        found.append(when(is_type(whole), _fractional_cpus()))
    yield "everyGap", when(is_type(list(denying)), concatenated(found))
    yield "gaps", f"variables.everyGap.transformList(i, g, i < {MOST_REPORTED}, g)"


_PLACE: Cel = "p.shown"
_OWNER: Cel = '(p.name == "" ? "the pod" : "container \\"" + p.name + "\\"")'
_TYPE: Cel = '" workload type \\"" + variables.type + "\\" asks for QoS class Guaranteed"'


def _gap(field: str, detail: str) -> Cel:
    return f"[{_PLACE} + {text(f'.{field}: Forbidden: ')} + {_OWNER} + {text(detail)} + {_TYPE}]"


def _fractional_cpus() -> Cel:
    cpu = 'quantity(c.?resources.?requests[?"cpu"].orValue("0"))'
    is_whole = f"{cpu}.isInteger() && {cpu}.asInteger() > 0"
    part = '"container \\"" + c.name + "\\""'
    detail = text(" does not request a whole number of CPUs, but")
    place = '"spec.containers[" + string(i) + "].resources.requests.cpu: Forbidden: "'
    message = f'{place} + {part} + {detail} + {_TYPE} + " with whole CPUs"'
    return f"object.spec.containers.transformList(i, c, !({is_whole}), {message})"


def fills_limits(policy: Policy) -> bool:
    """Return whether a type sets missing limits."""
    return any(each.qos.limits_from_requests for _, each in _guaranteed(policy))
