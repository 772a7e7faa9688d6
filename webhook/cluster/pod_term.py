"""Pod affinity terms of running pods: whom they attract or keep away."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.kube.reader import Reader
from webhook.kube.selectors import label_selector_matches

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term of a running pod's podAffinity or podAntiAffinity. Equal terms of many pods are one, by `key`.

    `is_required_anti_affinity`: it bars pods that it matches from the topology domain; any other only draws or repels
    them when nodes are scored.
    """

    key: Hashable
    is_required_anti_affinity: bool
    namespaces: frozenset[str]
    namespace_selector: Labels | None = field(compare=False)
    selector: Labels | None = field(compare=False)

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Whether it speaks of a pod with `labels` in `namespace`.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, AffinityTerm.Matches
        """
        if namespace not in self.namespaces and not label_selector_matches(self.namespace_selector, namespace_labels):
            return False
        return label_selector_matches(self.selector, labels)


def read_pod_terms(reader: Reader, affinity: Any, namespace: str) -> tuple[PodTerm, ...]:
    """The terms of `spec.affinity` of a running pod in `namespace`; what is malformed is noted with `reader`."""
    terms: list[PodTerm] = []
    parts = reader.object(affinity, "spec.affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        path = f"spec.affinity.{kind}"
        part = reader.object(parts.get(kind), path)
        required = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
        for where, term in reader.objects(part.get("requiredDuringSchedulingIgnoredDuringExecution"), required):
            terms.append(_term(reader, term, where, namespace, is_required_anti_affinity=kind == "podAntiAffinity"))
        preferred = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
        for where, weighted in reader.objects(part.get("preferredDuringSchedulingIgnoredDuringExecution"), preferred):
            where = f"{where}.podAffinityTerm"
            term = reader.object(weighted.get("podAffinityTerm"), where)
            terms.append(_term(reader, term, where, namespace, is_required_anti_affinity=False))
    return tuple(terms)


def _term(
    reader: Reader, term: Mapping[str, Any], path: str, namespace: str, *, is_required_anti_affinity: bool
) -> PodTerm:
    namespaces = frozenset(reader.texts(term.get("namespaces"), f"{path}.namespaces"))
    namespace_selector = _selector(reader, term.get("namespaceSelector"), f"{path}.namespaceSelector")
    selector = _selector(reader, term.get("labelSelector"), f"{path}.labelSelector")
    if not namespaces and namespace_selector is None:
        namespaces = frozenset({namespace})
    key = (_hashable(namespace_selector), _hashable(selector))
    return PodTerm(key, is_required_anti_affinity, namespaces, namespace_selector, selector)


def _hashable(selector: Mapping[str, Any] | None) -> Hashable:
    if selector is None:
        return None
    expressions = tuple(tuple(expression.values()) for expression in selector["matchExpressions"])
    return frozenset(selector["matchLabels"].items()), expressions


def _selector(reader: Reader, value: Any, path: str) -> Mapping[str, Any] | None:
    """The known fields of a LabelSelector; None where there is none."""
    if value is None:
        return None
    selector = reader.object(value, path)
    expressions = [
        {
            "key": reader.text(expression.get("key"), f"{where}.key"),
            "operator": reader.text(expression.get("operator"), f"{where}.operator"),
            "values": reader.texts(expression.get("values"), f"{where}.values"),
        }
        for where, expression in reader.objects(selector.get("matchExpressions"), f"{path}.matchExpressions")
    ]
    labels = reader.text_map(selector.get("matchLabels"), f"{path}.matchLabels")
    return {"matchLabels": labels, "matchExpressions": expressions}
