"""Node selectors: read terms from the API and match them against all nodes at once."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import LabelColumns, Mask
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import is_label_value
from webhook.kube.reader import Reader
from webhook.kube.selectors import NAME_FIELD, field_requirement_matches, parse_integer

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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


def read_node_affinity(reader: Reader, key: str) -> NodeAffinityTerms:
    """Return the NodeAffinity in the field `key`."""
    if reader.raw.get(key) is None:
        return NodeAffinityTerms()
    affinity = reader.object(key)
    required = read_node_selector(affinity, REQUIRED)
    return NodeAffinityTerms(required, () if affinity.raw.get(PREFERRED) is None else _preferred(affinity))


def read_node_selector(reader: Reader, key: str) -> tuple[Term, ...] | None:
    """Return the terms of the NodeSelector in the field `key`, or None if there is none."""
    if reader.raw.get(key) is None:
        return None
    return tuple([_term(term) for term in reader.object(key).objects("nodeSelectorTerms")])


def _preferred(affinity: Reader) -> tuple[WeightedTerm, ...]:
    found = []
    for weighted in affinity.objects(PREFERRED):
        weight = read_weight(weighted)
        preference = weighted.object("preference")
        term = _term(preference)
        _check_integers(preference, term)
        found.append(WeightedTerm(weight, term))
    return tuple(found)


def read_weight(weighted: Reader) -> int:
    """Return the weight of a preferred term."""
    weight = weighted.integer("weight")
    if not 1 <= weight <= 100:
        weighted.error("weight", weighted.raw.get("weight"), "must be in the range 1-100")
    return weight


def _check_integers(preference: Reader, term: Term) -> None:
    """Report values of Gt and Lt that are not integers.

    In a preferred term, they make kube-scheduler reject the pod. In a required term, they only match no node.
    """
    for index, requirement in enumerate(term.expressions):
        values = requirement.values
        if requirement.operator in ("Gt", "Lt") and (len(values) != 1 or parse_integer(values[0]) is None):
            where = f"matchExpressions[{index}].values"
            preference.error(where, list(values), "must be one integer, for Gt and Lt")


def _term(term: Reader) -> Term:
    """Return the term; a term with an invalid label value matches no node.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, newNodeSelectorTerm
    """
    expressions, fields = _requirements(term, "matchExpressions"), _requirements(term, "matchFields")
    if not all(is_label_value(value) for requirement in expressions for value in requirement.values):
        return Term((), ())
    return Term(expressions, fields)


def _requirements(term: Reader, key: str) -> tuple[Requirement, ...]:
    if term.raw.get(key) is None:
        return ()
    return tuple(
        [Requirement(each.text("key"), each.text("operator"), each.texts("values")) for each in term.objects(key)]
    )


# No node has this name, and no requirement that can be stored names it.
_NO_NAME = "\0"


def any_matches(
    terms: Sequence[Term], labels: LabelColumns, rows: Mapping[str, int] | None, expired: Expired = never
) -> Mask:
    """Return a mask of the nodes that match one of `terms`, or of no nodes if there are no terms.

    `rows` are the rows by node name. If `rows` is None, requirements on fields, such as the node name, count as met.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, LazyErrorNodeSelector.Match
    """
    if not terms:
        return np.zeros(labels.count, dtype=np.bool_)
    matching = matches(terms[0], labels, rows, expired)
    for term in terms[1:]:
        matching |= matches(term, labels, rows, expired)
    return matching


def matches(term: Term, labels: LabelColumns, rows: Mapping[str, int] | None, expired: Expired = never) -> Mask:
    """Return a mask of the nodes that satisfy all of `term`, or none for an empty one; see `any_matches`."""
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
