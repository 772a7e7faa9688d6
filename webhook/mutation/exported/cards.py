"""The cards that a pod asks for by its annotations: requirements on labels of nodes, and tolerations of products."""

import re
from collections.abc import Iterable, Iterator, Sequence

from webhook.kube.quantity import MAX_INT64
from webhook.mutation.exported.cel import (
    LABEL_VALUE,
    Cel,
    all_of,
    any_of,
    choose,
    concatenated,
    is_label_value,
    matches_any,
    negated,
    regex_of,
    stripped,
    text,
    texts,
    when,
)
from webhook.mutation.exported.node_affinity import requirement
from webhook.mutation.exported.tolerations import equal, exists
from webhook.mutation.exported.variables import NAMESPACE, OWN, Variable, by_limit, is_limited, value_of
from webhook.policy.keys import MEBIBYTE, MOST_PRODUCTS, Keys
from webhook.policy.policy import Policy
from webhook.policy.products import named_products, namespaces_of_product, with_variants

_POSITIVE = "^0*[1-9][0-9]*$"
_QUANTITY = r"^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,9}|[numkMGTPE]|[KMGTPE]i)?$"
_PRODUCT: Cel = 'variables.card + ".product"'
_LEAST_BYTES = 1024 * MEBIBYTE
_FRACTION: Cel = "variables.fractionText"
IS_FRACTION: Cel = f"{_FRACTION}.matches({text('^0?[.][0-9]{0,3}[1-9]0*$')})"
"""Whether the annotation is a decimal above 0 and below 1."""
SHORTEST_FRACTION: Cel = f'"0." + {_FRACTION}.substring({_FRACTION}.indexOf(".") + 1).find("^[0-9]*[1-9]")'
"""The decimal of the annotation in its shortest form."""


def card_of(policy: Policy) -> Iterator[Variable]:
    """Yield the prefix of the labels that the annotations mean, and the label of the driver."""
    accelerators = policy.spec.accelerators
    first = "variables.accelerators.size() == 0 ? 0 : variables.accelerators[0]"
    yield "accelerator", f"({first})"
    is_it = [(f"variables.accelerator == {index}", each) for index, each in enumerate(accelerators)]
    yield "card", choose([(at, text(each.card)) for at, each in is_it[1:]], text(accelerators[0].card))
    drivers = [(at, text(each.driver_label or f"{each.card}.driver-version")) for at, each in is_it]
    yield "driverLabel", choose(drivers[1:], drivers[0][1])


def products(policy: Policy) -> Iterator[Variable]:
    """Yield the products that the pod names, and those that will do: they and their variants."""
    yield "productText", value_of(policy, Keys.gpu_product)
    yield "productList", f'variables.productText == "" ? [] : variables.productText.split(",").map(p, {stripped("p")})'
    yield "productsOnce", "variables.productList.transformList(i, p, variables.productList.indexOf(p) == i, p)"
    once = "variables.productsOnce"
    is_valid = f"{once}.size() <= {MOST_PRODUCTS} && {once}.all(p, {is_label_value('p')})"
    may_use = may_use_product(policy, "p")
    yield "productsValid", is_valid
    yield "productsDenied", f"variables.productsValid ? {once}.filter(p, {negated(may_use)}) : []"
    named = "variables.productsValid && variables.productsDenied.size() == 0"
    yield "products", f"{named} ? {once} : []"
    variants = texts(policy.spec.product_variants)
    is_label = f"(p + s).matches({text(LABEL_VALUE)})"
    with_variants = f'([p] + {variants}.filter(s, !p.endsWith(s) && {is_label}).map(s, p + s)).join(",")'
    every = f'variables.products.map(p, {with_variants}).join(",").split(",")'
    if not policy.spec.product_variants:
        yield "accepted", "variables.products"
        return
    yield "everyProduct", f"variables.products.size() == 0 ? [] : {every}"
    first = f"variables.everyProduct.indexOf(p) == i && {may_use}"
    yield "accepted", f"variables.everyProduct.transformList(i, p, {first}, p)"


def may_use_product(policy: Policy, product: Cel) -> Cel:
    """Return whether pods of the namespace may use `product`, which an expression names.

    A product has the permissions of those that it is a variant of: the end of the pattern can be any of the suffixes.
    """
    entries = sorted(policy.spec.allowed_products.items())
    conditions = []
    if entries:
        is_listed = matches_product(policy, product, [pattern for pattern, _ in entries])
        allowed = any_of(
            all_of((matches_any(NAMESPACE, names), matches_product(policy, product, [each]))) for each, names in entries
        )
        conditions.append(any_of((negated(is_listed), allowed)))
    return all_of((*conditions, within_product_limits(policy, product)))


def within_product_limits(policy: Policy, product: Cel) -> Cel:
    """Return whether the limits of the namespace allow `product`."""
    return by_limit(policy, "products", lambda each: matches_product(policy, product, each.products or ()), "true")


def matches_product(policy: Policy, product: Cel, patterns: Sequence[str]) -> Cel:
    """Return whether one of `patterns` matches `product`, or a product that it is a variant of."""
    if not patterns:
        return "false"
    return f"{product}.matches({text(_regex(policy, patterns))})"


def _regex(policy: Policy, patterns: Sequence[str]) -> str:
    suffixes = "|".join(map(re.escape, policy.spec.product_variants))
    return regex_of(patterns, f"(?:{suffixes})*" if suffixes else "")


def amounts(policy: Policy) -> Iterator[Variable]:
    """Yield the least memory in MiB, number of cards and version of the driver, or 0 if the pod asks for none."""
    yield "memoryText", value_of(policy, Keys.gpu_memory)
    memory = "variables.memoryText"
    is_valid = f"{memory}.size() <= 256 && {memory}.matches({text(_QUANTITY)}) && isQuantity({memory})"
    # A number with a fraction is no integer for CEL, even if its bytes are; the float is off by less than one of them.
    is_ceiling = "quantity(string(n)).compareTo(q) >= 0 && quantity(string(n - 1)).compareTo(q) < 0"
    rounded = f"([-1, 0, 1].map(d, int(q.asApproximateFloat()) + d).filter(n, {is_ceiling}) + [0])[0]"
    size = f"[quantity({memory})].map(q, q.isInteger() ? q.asInteger() : {rounded})[0]"
    is_capped = f'quantity({memory}).compareTo(quantity("{MAX_INT64}")) >= 0'
    yield "memoryBytes", f"({is_valid} ? ({is_capped} ? {MAX_INT64} : {size}) : 0)"
    kept, whole = 100 - policy.spec.gpu_memory_tolerance_percent, 100 * MEBIBYTE
    size = "variables.memoryBytes"
    least = f"{size} / {whole} * {kept} + (({size} % {whole}) * {kept} + {whole - 1}) / {whole}"
    yield "memory", f"({size} >= {_LEAST_BYTES} ? {least} : 0)"
    for name, annotation in (("count", Keys.gpu_count), ("driver", Keys.gpu_driver)):
        yield f"{name}Text", value_of(policy, annotation)
        value = f"variables.{name}Text"
        yield name, f"({is_positive(value)} ? int({value}) : 0)"


def is_positive(value: Cel) -> Cel:
    """Return whether the text is an integer above zero."""
    return f"({value}.size() < 10 && {value}.matches({text(_POSITIVE)}))"


def any_product(policy: Policy) -> Iterator[Variable]:
    """Yield what a pod may use that names no product: the products `listed`, or all but those `excluded`."""
    names_it = f"(variables.products.size() > 0 || {text(policy.keys.gpu_product)} in {OWN})"
    will_do = "variables.accelerators.size() > 0" if policy.spec.tolerate_any_product else "false"
    yield "anyWillDo", all_of((will_do, negated(names_it)))
    excluded, listed, is_listed = "[]", "[]", "false"
    if policy.spec.allowed_products:
        every = with_variants(policy.spec, named_products(policy.spec))
        excluded = _usable(policy, every, None, denied=True)
        listed = _usable(policy, every, None)
        of_patterns = any_of(
            negated(matches_any(NAMESPACE, names))
            for pattern, names in sorted(policy.spec.allowed_products.items())
            if "*" in pattern
        )
        is_listed = any_of((of_patterns, "false" if policy.spec.product_affinity else f"{excluded}.size() > 0"))
    yield "listsProducts", by_limit(policy, "products", lambda _: "true", is_listed)
    yield "listed", by_limit(policy, "products", lambda each: _listed(policy, each.products or ()), listed)
    yield (
        "listIsRequired",
        by_limit(policy, "products", lambda each: _is_required(policy, each.products or ()), "false"),
    )
    yield "excluded", by_limit(policy, "products", lambda _: "[]", excluded)


def _listed(policy: Policy, allowed: tuple[str, ...]) -> Cel:
    """Return the products that the namespace may use under limits that allow those `allowed`."""
    return _usable(policy, with_variants(policy.spec, named_products(policy.spec, allowed)), allowed)


def _is_required(policy: Policy, allowed: tuple[str, ...]) -> Cel:
    return "true" if policy.spec.product_affinity and not any("*" in each for each in allowed) else "false"


def _usable(policy: Policy, names: Iterable[str], allowed: Sequence[str] | None, *, denied: bool = False) -> Cel:
    """Return those of `names` that the namespace may use, or may not; `allowed` are those of its limits, if any."""
    found: list[tuple[Cel, list[str]]] = []
    for name in names:
        may = _may_use(policy, name, allowed)
        condition = negated(may) if denied else may
        if not found or found[-1][0] != condition:
            found.append((condition, []))
        found[-1][1].append(name)
    return concatenated(when(condition, texts(each)) for condition, each in found)


def _may_use(policy: Policy, product: str, allowed: Sequence[str] | None) -> Cel:
    if allowed is not None and not re.search(_regex(policy, allowed), product):
        return "false"
    namespaces = namespaces_of_product(policy.spec, product)
    return "true" if namespaces is None else matches_any(NAMESPACE, namespaces)


def requirements(policy: Policy) -> Iterator[Cel]:
    """Yield lists of requirements on the labels of cards, in the order of the rule GpuProduct."""
    if policy.spec.product_affinity:
        yield when("variables.accepted.size() > 0", f"[{requirement(_PRODUCT, 'In', 'variables.accepted')}]")
    labels = {"memory": 'variables.card + ".memory"', "count": 'variables.card + ".count"'}
    for name, label in (*labels.items(), ("driver", "variables.driverLabel")):
        bound = f"[string(variables.{name} - 1)]"
        yield when(f"variables.{name} > 0", f"[{requirement(label, 'Gt', bound)}]")
    for index, label in _product_labels(policy):
        asks = all_of(("variables.anyWillDo", f"{_requests(policy, index)}"))
        in_listed = when("variables.listed.size() > 0", f"[{requirement(label, 'In', 'variables.listed')}]")
        of_list = when("variables.listIsRequired", in_listed)
        not_in = f"[{requirement(label, 'Exists')}, {requirement(label, 'NotIn', 'variables.excluded')}]"
        of_others = when("variables.excluded.size() > 0", not_in)
        if policy.spec.allowed_products or is_limited(policy, "products"):
            yield when(asks, choose([("variables.listsProducts", of_list)], of_others))


def tolerations(policy: Policy) -> Iterator[Cel]:
    """Yield lists of tolerations of products, in the order of the rule GpuProduct."""
    yield f"variables.accepted.map(p, {equal(_PRODUCT, 'p')})"
    for index, label in _product_labels(policy):
        asks = all_of(("variables.anyWillDo", _requests(policy, index)))
        listed = f"variables.listed.map(p, {equal(label, 'p')})"
        yield when(asks, choose([("variables.listsProducts", listed)], f"[{exists(label)}]"))


def _product_labels(policy: Policy) -> Iterator[tuple[int, Cel]]:
    """Yield index and product label of the accelerators, the first one of each card."""
    seen = set()
    for index, each in enumerate(policy.spec.accelerators):
        if each.card not in seen:
            yield index, text(f"{each.card}.product")
        seen.add(each.card)


def _requests(policy: Policy, index: int) -> Cel:
    """Return whether the pod requests an accelerator with the same card as that at `index`."""
    card = policy.spec.accelerators[index].card
    same = [i for i, each in enumerate(policy.spec.accelerators) if each.card == card]
    return any_of(f"{each} in variables.accelerators" for each in same)


def is_effective() -> Cel:
    """Return whether the rule GpuProduct has edits."""
    found = ["variables.accepted.size() > 0", "variables.memory > 0", "variables.count > 0", "variables.driver > 0"]
    is_any = "(!variables.listsProducts || variables.listed.size() > 0)"
    return any_of((*found, all_of(("variables.anyWillDo", is_any))))
