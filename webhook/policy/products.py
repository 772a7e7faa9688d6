"""The GPU products and numbers of cards that a namespace may use."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from webhook.kube.names import is_label_value
from webhook.policy.spec.admission import NamespaceLimits
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.field_types import matches_any


def limits_of(spec: PolicySpec, namespace: str) -> NamespaceLimits | None:
    """Return the first entry of `namespaceLimits` for `namespace`, or None if there is none."""
    return next((each for each in spec.namespace_limits if matches_any(namespace, each.namespaces)), None)


@dataclass(frozen=True, slots=True)
class AnyProduct:
    """The products that a pod may use if it names none: all except `excluded`, or only `listed`."""

    excluded: tuple[str, ...] = ()
    """Products that the namespace may not use."""

    listed: tuple[str, ...] | None = None
    """The products that the policy lists for the namespace, if a node selector cannot express those that it may not
    use. None means that it can."""

    is_required: bool = False
    """The pod may run only on nodes with a product in `listed`: these are all that the namespace may use."""


def namespaces_of_product(spec: PolicySpec, product: str) -> tuple[str, ...] | None:
    """Return the patterns of the namespaces that may use `product` or a variant, or None for all."""
    # Sorted, because policies that differ only in the order of keys have the same revision.
    entries = sorted(spec.allowed_products.items())
    names = (product, *_bases(spec, product))
    found = [namespaces for pattern, namespaces in entries if _matches(pattern, names)]
    return tuple(dict.fromkeys(each for namespaces in found for each in namespaces)) if found else None


def may_use_product(spec: PolicySpec, product: str, namespace: str) -> bool:
    """Return whether pods of `namespace` may use `product`."""
    allowed = namespaces_of_product(spec, product) if spec.allowed_products else None
    if allowed is not None and not matches_any(namespace, allowed):
        return False
    return products_instead_of(spec, product, namespace) is None


def products_instead_of(spec: PolicySpec, product: str, namespace: str) -> tuple[str, ...] | None:
    """Return what the limits of `namespace` allow instead of `product`, or None if they allow it."""
    limits = limits_of(spec, namespace)
    if limits is None or limits.products is None:
        return None
    names = (product, *_bases(spec, product))
    return None if any(_matches(pattern, names) for pattern in limits.products) else limits.products


def accepted_products(spec: PolicySpec, products: Iterable[str], namespace: str) -> tuple[str, ...]:
    """Return `products`, each followed by those of its variants that pods of `namespace` may use."""
    accepted = (each for product in products for each in (product, *_variants(spec, product)))
    return tuple(dict.fromkeys(each for each in accepted if may_use_product(spec, each, namespace)))


def with_variants(spec: PolicySpec, products: Iterable[str]) -> tuple[str, ...]:
    """Return `products`, each followed by its variants."""
    return tuple(dict.fromkeys(each for product in products for each in (product, *_variants(spec, product))))


def named_products(spec: PolicySpec, products: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names in `products`, then those that `allowedProducts` restricts. Patterns are left out."""
    return tuple(dict.fromkeys(each for each in (*products, *sorted(spec.allowed_products)) if "*" not in each))


def any_product(spec: PolicySpec, namespace: str) -> AnyProduct:
    """Return the products that a pod of `namespace` may use without naming one.

    A node selector can exclude label values but not patterns, and only helps if the policy requires products by label.
    """
    limits = limits_of(spec, namespace)
    if limits is not None and limits.products is not None:
        listed = accepted_products(spec, named_products(spec, limits.products), namespace)
        is_exact = not any("*" in product for product in limits.products)
        return AnyProduct(listed=listed, is_required=is_exact and spec.product_affinity)
    if not spec.allowed_products:
        return AnyProduct()
    patterns = sorted(spec.allowed_products)
    every = with_variants(spec, named_products(spec))
    excluded = tuple(each for each in every if not may_use_product(spec, each, namespace))
    excludes_a_pattern = any(
        "*" in pattern and not matches_any(namespace, spec.allowed_products[pattern]) for pattern in patterns
    )
    if excludes_a_pattern or (excluded and not spec.product_affinity):
        return AnyProduct(listed=tuple(each for each in every if each not in excluded))
    return AnyProduct(excluded)


def _matches(pattern: str, names: tuple[str, ...]) -> bool:
    # The comparison is much faster, and a pod can name a hundred products with ten variants each.
    return any(fnmatchcase(name, pattern) for name in names) if "*" in pattern else pattern in names


def _variants(spec: PolicySpec, product: str) -> Iterator[str]:
    """Yield the labels that GPU Feature Discovery writes for shared or divided cards of `product`.

    Source: github.com/NVIDIA/k8s-device-plugin/internal/lm/resource.go, getProductName and NewMIGResourceLabeler
    """
    for suffix in spec.product_variants:
        variant = product + suffix
        # GPU Feature Discovery writes no label that is too long.
        if not product.endswith(suffix) and is_label_value(variant):
            yield variant


def _bases(spec: PolicySpec, product: str) -> Iterator[str]:
    """Yield the products that `product` is a direct or indirect variant of."""
    names = [product]
    for name in names:
        found = (name.removesuffix(suffix) for suffix in spec.product_variants)
        bases = [base for base in found if base and base not in names]
        names += bases
        yield from bases
