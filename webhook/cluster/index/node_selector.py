"""Node selectors: read terms from the API and match them against all nodes at once."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.index.labels import LabelColumns, Mask
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import is_label_value
from webhook.kube.reader import Reader
from webhook.kube.selectors import NAME_FIELD, field_requirement_matches, parse_integer

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Requirement(NamedTuple):
    """One requirement on a label or a field of a node."""

    key: str
    operator: str
    values: tuple[str, ...]


class Term(NamedTuple):
    """One NodeSelectorTerm: all its requirements must hold. An empty term matches no node."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]


class WeightedTerm(NamedTuple):
    """One preferred NodeSelectorTerm."""

    weight: int
    term: Term


class NodeAffinityTerms(NamedTuple):
    """A NodeAffinity. `required` is None if it is not set; an empty list of terms matches no node."""

    required: tuple[Term, ...] | None = None
    preferred: tuple[WeightedTerm, ...] = ()


def read_node_affinity(reader: Reader, value: Any, path: str) -> NodeAffinityTerms:
    """Return the NodeAffinity `value` at `path`; `reader` collects the errors."""
    if value is None:
        return NodeAffinityTerms()
    affinity = reader.object(value, path)
    return NodeAffinityTerms(
        read_node_selector(reader, affinity.get(_REQUIRED), f"{path}.{_REQUIRED}"),
        _preferred(reader, affinity.get(_PREFERRED), f"{path}.{_PREFERRED}"),
    )


def read_node_selector(reader: Reader, value: Any, path: str) -> tuple[Term, ...] | None:
    """Return the terms of the NodeSelector `value` at `path`, None without one; `reader` collects the errors."""
    if value is None:
        return None
    terms = reader.objects(reader.object(value, path).get("nodeSelectorTerms"), f"{path}.nodeSelectorTerms")
    return tuple([_term(reader, term, where) for where, term in terms])


def _preferred(reader: Reader, value: Any, place: str) -> tuple[WeightedTerm, ...]:
    if value is None:
        return ()
    found = []
    for path, weighted in reader.objects(value, place):
        where = f"{path}.preference"
        weight = reader.integer(weighted.get("weight"), f"{path}.weight")
        if not 1 <= weight <= 100:
            reader.error(f"{path}.weight", weighted.get("weight"), "must be in the range 1-100")
        term = _term(reader, reader.object(weighted.get("preference"), where), where)
        _check_integers(reader, term, where)
        found.append(WeightedTerm(weight, term))
    return tuple(found)


def _check_integers(reader: Reader, term: Term, path: str) -> None:
    """Report values of Gt and Lt that make kube-scheduler reject the pod; in a required term they only do not match."""
    for index, requirement in enumerate(term.expressions):
        if requirement.operator in ("Gt", "Lt") and not _is_integer(requirement.values):
            where = f"{path}.matchExpressions[{index}].values"
            reader.error(where, list(requirement.values), "must be one integer, for Gt and Lt")


def _is_integer(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and parse_integer(values[0]) is not None


def _term(reader: Reader, term: Mapping[str, Any], path: str) -> Term:
    """Return the term; a term with an invalid label value matches no node.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, newNodeSelectorTerm
    """
    expressions = _requirements(reader, term.get("matchExpressions"), f"{path}.matchExpressions")
    fields = _requirements(reader, term.get("matchFields"), f"{path}.matchFields")
    if not all(is_label_value(value) for requirement in expressions for value in requirement.values):
        return Term((), ())
    return Term(expressions, fields)


def _requirements(reader: Reader, value: Any, path: str) -> tuple[Requirement, ...]:
    if value is None:
        return ()
    return tuple(
        [
            Requirement(
                reader.text(requirement.get("key"), f"{where}.key"),
                reader.text(requirement.get("operator"), f"{where}.operator"),
                reader.texts(requirement.get("values"), f"{where}.values"),
            )
            for where, requirement in reader.objects(value, path)
        ]
    )


# No node has this name, and no requirement that can be stored names it.
_NO_NAME = "\0"


def any_matches(
    terms: Sequence[Term], labels: LabelColumns, rows: Mapping[str, int] | None, expired: Expired = never
) -> Mask:
    """Return a mask of the nodes that one of `terms` matches; without terms, none. `rows` are the rows by node name.

    `rows` None: names are ignored, and every requirement of a field holds.

    Raises:
        DeadlineNearError: `expired()` returned true.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, LazyErrorNodeSelector.Match
    """
    if not terms:
        return np.zeros(labels.count, dtype=np.bool_)
    matching = matches(terms[0], labels, rows, expired)
    for term in terms[1:]:
        matching |= matches(term, labels, rows, expired)
    return matching


def matches(term: Term, labels: LabelColumns, rows: Mapping[str, int] | None, expired: Expired = never) -> Mask:
    """Return a mask of the nodes that satisfy every requirement of `term`; an empty term matches none.

    `rows` as in `any_matches`.

    Raises:
        DeadlineNearError: `expired()` returned true.
    """
    matching: Mask | None = None
    for requirement in in_time(term.expressions, expired):
        matched = labels.matches(*requirement)
        matching = matched if matching is None else matching & matched
    if rows is not None:
        for requirement in in_time(term.fields, expired):
            matched = _field_matches(requirement, labels.count, rows)
            matching = matched if matching is None else matching & matched
    # If names are ignored, every requirement of a field holds.
    return np.full(labels.count, bool(term.fields)) if matching is None else matching


def _field_matches(requirement: Requirement, count: int, rows: Mapping[str, int]) -> Mask:
    raw = requirement._asdict()
    matching = np.full(count, field_requirement_matches(raw, _NO_NAME))
    if requirement.key == NAME_FIELD:
        for name in requirement.values:
            row = rows.get(name)
            if row is not None:
                matching[row] = field_requirement_matches(raw, name)
    return matching
