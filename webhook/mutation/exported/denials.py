"""What is wrong with the annotations of a pod, as texts that name key, value and valid values, like the webhook's."""

from collections.abc import Iterator
from typing import Any

from webhook.documents.field import required, unsupported
from webhook.mutation.exported import cards, qos
from webhook.mutation.exported.cel import Cel, any_of, choose, concatenated, matches_any, negated, text, texts, when
from webhook.mutation.exported.limits import NAMED, allowed_text
from webhook.mutation.exported.scheduling import REQUESTED
from webhook.mutation.exported.variables import NAMESPACE, OWN, Variable, is_limited, may_use_type, types_of, value_of
from webhook.policy.keys import MOST_PRODUCTS, NO_TOPOLOGY, Annotation, Keys, UnsupportedValueError
from webhook.policy.policy import Policy

_LONGEST_VALUE = 120
_LONGEST_MESSAGE = 4000
_PROBE = "\0"

_VALID: dict[str, Cel] = {
    **REQUESTED,
    "gpu_product": 'variables.productText != "" && variables.productsValid',
    "gpu_memory": "variables.memory > 0",
    "gpu_count": "variables.count > 0",
    "gpu_driver": "variables.driver > 0",
    "spread": f'variables.spreadKey != "" || variables.spreadText == "{NO_TOPOLOGY}"',
}
_ORDER = (
    Keys.workload_type,
    Keys.inject,
    Keys.gpu_product,
    Keys.bin_packing,
    Keys.scheduler,
    Keys.preemptible,
    Keys.queue,
    Keys.gang,
    Keys.gang_size,
    Keys.gpu_fraction,
    Keys.gpu_memory,
    Keys.gpu_count,
    Keys.gpu_driver,
    Keys.placement_check,
    Keys.spread,
)


def variables(policy: Policy) -> Iterator[Variable]:
    """Yield the invalid values of the pod, and the values that its namespace may not use."""
    key = text(policy.keys.workload_type)
    yield "isRead", f'variables.inForce && ({key} in {OWN} || variables.type != "")'
    found = (_of_annotation(policy, each) for each in _ORDER)
    yield "errors", concatenated((when("variables.isRead", concatenated(found)), _missing_type(policy)))
    yield "typeDenials", _of_type(policy)
    yield "productDenials", _of_products(policy)
    lists = ["variables.typeDenials", "variables.productDenials"]
    lists += ["variables.limitDenials"] if policy.spec.namespace_limits else []
    lists += ["variables.gaps"] if qos.asks_for_class(policy) else []
    yield "denials", when("variables.isRead", concatenated(lists))


def validations() -> list[dict[str, Any]]:
    """Return the validations: an invalid value has the reason Invalid, a value that is not allowed Forbidden."""
    message = "the annotations of the pod are not valid under its placement policy"
    return [
        {
            "expression": f"variables.{name}.size() == 0",
            "message": message,
            "messageExpression": _message(lists),
            "reason": reason,
        }
        for name, lists, reason in (
            ("errors", "(variables.errors + variables.denials)", "Invalid"),
            ("denials", "variables.denials", "Forbidden"),
        )
    ]


def _message(lists: Cel) -> Cel:
    joined = f'{lists}.join("; ")'
    return f'({joined}.size() <= {_LONGEST_MESSAGE} ? {joined} : {joined}.substring(0, {_LONGEST_MESSAGE}) + "…")'


def _of_annotation(policy: Policy, annotation: Annotation[Any]) -> Cel:
    """Return the error of an annotation of the pod whose value is not valid."""
    key = policy.keys.of(annotation)
    own, path = f"{OWN}[{text(key)}]", f"metadata.annotations[{key}]"
    supported = _supported(policy, annotation)
    if supported is not None:
        detail = text("; " + unsupported("", "", supported).detail)
        value = "variables.namedType" if annotation is Keys.workload_type else value_of(policy, annotation)
        is_valid = any_of(f"{value} == {text(each)}" for each in supported)
        error = f"[{text(f'{path}: Unsupported value: ')} + {_shown(own)} + {detail}]"
        return when(f"{text(key)} in {OWN} && !({is_valid})", error)
    begin = f"{text(f'{path}: Invalid value: ')} + {_shown(own)}"
    details = choose(_details(policy, annotation), text("; " + _detail(policy, annotation, _PROBE)))
    return when(f"{text(key)} in {OWN} && !({_VALID[annotation.attribute]})", f"[{begin} + {details}]")


def _supported(policy: Policy, annotation: Annotation[Any]) -> tuple[str, ...] | None:
    """Return the values of an annotation that has a few, or None for any other."""
    try:
        annotation.parser(policy.spec)(_PROBE)
    except UnsupportedValueError as error:
        return tuple(error.supported)
    except ValueError:
        pass
    return None


def _detail(policy: Policy, annotation: Annotation[Any], value: str) -> str:
    """Return what the webhook says of an invalid value."""
    try:
        annotation.parser(policy.spec)(value)
    except ValueError as error:
        return str(error)
    raise AssertionError(value)


def _details(policy: Policy, annotation: Annotation[Any]) -> Iterator[tuple[Cel, Cel]]:
    """Yield conditions with the details of values that another detail than the usual is about."""
    if annotation is Keys.gpu_product:
        many = ",".join(map(str, range(MOST_PRODUCTS + 1)))
        yield f"variables.productsOnce.size() > {MOST_PRODUCTS}", text("; " + _detail(policy, annotation, many))
    elif annotation is Keys.gpu_memory:
        is_zero = 'quantity(variables.memoryText).compareTo(quantity("0")) <= 0'
        of_zero, of_few = (text("; " + _detail(policy, annotation, each)) for each in ("0", "1023Mi"))
        is_quantity = "isQuantity(variables.memoryText)"
        yield is_quantity, f"({is_zero} ? {of_zero} : {of_few} + {_meant_memory()})"
    elif annotation is Keys.gpu_fraction:
        names = choose(
            (
                (f"variables.requested[0] == {index}", text(each.name))
                for index, each in enumerate(policy.spec.accelerators[:-1])
            ),
            text(policy.spec.accelerators[-1].name),
        )
        end = text(": remove that request or this annotation")
        is_fraction = f"{cards.IS_FRACTION} && variables.requested.size() > 0"
        yield is_fraction, f"{text('; the pod requests whole cards of ')} + {names} + {end}"


def _meant_memory() -> Cel:
    """Return a question about the size that a small number probably means: one of GiB, or of MiB."""
    number = 'int(variables.memoryText.find("[1-9][0-9]*"))'
    size = f"({number} < 1024 ? {number} : {number} / 1024)"
    is_small = f'variables.memoryText.matches("^0*[1-9][0-9]{{0,6}}[mkM]?$") && {number} < {1024 * 1024}'
    return f'({is_small} ? "; did you mean " + string({size}) + "Gi?" : "")'


def _shown(value: Cel) -> Cel:
    quoted = f"strings.quote({value})"
    is_short = f"{quoted}.size() <= {_LONGEST_VALUE}"
    return f'({is_short} ? {quoted} : {quoted}.substring(0, {_LONGEST_VALUE - 1}) + "…")'


def _missing_type(policy: Policy) -> Cel:
    if policy.spec.require_type != "deny":
        return "[]"
    types = ", ".join(policy.spec.workload_types)
    detail = f"the pod requests an accelerator, and the policy requires a workload type of such pods: {types}"
    error = required(f"metadata.annotations[{policy.keys.workload_type}]", detail)
    has_card = "(variables.requested.size() > 0 || variables.share)"
    return when(f"variables.inForce && {has_card} && !variables.hasType", f"[{text(str(error))}]")


def _of_type(policy: Policy) -> Cel:
    """Return the denial of the pod's own type."""
    key = policy.keys.workload_type
    named = "variables.namedType"
    is_known = any_of(f"{named} == {text(name)}" for name, _ in types_of(policy))
    denied = f"{text(key)} in {OWN} && {is_known} && {negated(may_use_type(policy, named))}"
    path = text(f"metadata.annotations[{key}]: Forbidden: ")
    of_namespaces = [
        (
            f"{named} == {text(name)} && {negated(matches_any(NAMESPACE, each.allowed_namespaces))}",
            text(f"; allowed namespaces: {', '.join(each.allowed_namespaces) or 'none'}"),
        )
        for name, each in types_of(policy)
    ]
    allowed = choose(of_namespaces, allowed_text(policy, "workload_types"))
    detail = f'{NAMED}ask for workload type \\"" + {named} + "\\"" + {allowed}'
    return when(denied, f"[{path} + {detail}]")


def _of_products(policy: Policy) -> Cel:
    """Return the denials of the pod's own products; their valid namespaces are those of all entries that match."""
    key = policy.keys.gpu_product
    path = text(f"metadata.annotations[{key}]: Forbidden: ")
    if not policy.spec.allowed_products and not is_limited(policy, "products"):
        return "[]"
    begin = f'{NAMED}ask for product \\"" + p + "\\""'
    of_limits = allowed_text(policy, "products")
    denied_by_limits = negated(cards.within_product_limits(policy, "p"))
    entries = [
        when(cards.matches_product(policy, "p", [pattern]), texts(namespaces))
        for pattern, namespaces in sorted(policy.spec.allowed_products.items())
    ]
    of_namespaces = f'"; allowed namespaces: " + [{concatenated(entries)}.join(", ")].map(l, l == "" ? "none" : l)[0]'
    of_product = choose([(denied_by_limits, of_limits)], of_namespaces if entries else text(""))
    return when(f"{text(key)} in {OWN}", f"variables.productsDenied.map(p, {path} + {begin} + {of_product})")
