"""What the plugins read of a pod that waits for a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.kube.amounts import Amounts
from webhook.kube.ports import HostPort, read_host_ports
from webhook.kube.reader import Reader
from webhook.kube.resource_names import is_schedulable_resource
from webhook.kube.resources import read_pod_resources
from webhook.kube.selectors import parse_integer
from webhook.kube.taints import Toleration

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = "spec.affinity.nodeAffinity"


class Requirement(NamedTuple):
    """One requirement on a label or a field of a node."""

    key: str
    operator: str
    values: tuple[str, ...]


class Term(NamedTuple):
    """One NodeSelectorTerm: all its requirements must hold. One without any matches no node."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]


class WeightedTerm(NamedTuple):
    """One preferred NodeSelectorTerm."""

    weight: int
    term: Term


@dataclass(frozen=True, slots=True)
class PodInfo:
    """The part of a pod that placement depends on: pods with equal ones get the same answer on the same snapshot.

    Amounts are pairs of resource and thousandths of a core for cpu, bytes or units for all else. `requests` must be
    free on the node, zero ones left out; `scored` count a default for each container without a request of cpu or
    memory. `required` is None without required node affinity, and one without terms matches no node.
    """

    requests: tuple[tuple[str, int], ...]
    scored: tuple[tuple[str, int], ...]
    node_name: str
    tolerations: tuple[Toleration, ...]
    node_selector: tuple[tuple[str, str], ...]
    required: tuple[Term, ...] | None
    preferred: tuple[WeightedTerm, ...]
    host_ports: tuple[HostPort, ...]

    @classmethod
    def of(cls, reader: Reader, pod: Mapping[str, Any]) -> "PodInfo":
        """What the plugins read of `pod`, a raw object of the API; what is malformed is noted with `reader`."""
        spec = reader.object(pod.get("spec"), "spec")
        resources = read_pod_resources(reader, pod)
        affinity = reader.object(spec.get("affinity"), "spec.affinity")
        node_affinity = reader.object(affinity.get("nodeAffinity"), _NODE_AFFINITY)
        return cls(
            requests=_pairs(resources.requests),
            scored=_pairs(resources.scored),
            node_name=reader.text(spec.get("nodeName"), "spec.nodeName"),
            tolerations=_tolerations(reader, spec.get("tolerations")),
            node_selector=tuple(reader.text_map(spec.get("nodeSelector"), "spec.nodeSelector").items()),
            required=_required(reader, node_affinity.get(_REQUIRED)),
            preferred=_preferred(reader, node_affinity.get(_PREFERRED)),
            host_ports=read_host_ports(reader, spec),
        )


def _pairs(amounts: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple([(name, amount) for name, amount in amounts.items() if amount and is_schedulable_resource(name)])


def _tolerations(reader: Reader, value: Any) -> tuple[Toleration, ...]:
    text = reader.text
    return tuple(
        [
            Toleration(
                text(toleration.get("key"), f"{path}.key"),
                text(toleration.get("operator"), f"{path}.operator") or "Equal",
                text(toleration.get("value"), f"{path}.value"),
                text(toleration.get("effect"), f"{path}.effect"),
            )
            for path, toleration in reader.objects(value, "spec.tolerations")
        ]
    )


def _required(reader: Reader, value: Any) -> tuple[Term, ...] | None:
    if value is None:
        return None
    path = f"{_NODE_AFFINITY}.{_REQUIRED}"
    terms = reader.objects(reader.object(value, path).get("nodeSelectorTerms"), f"{path}.nodeSelectorTerms")
    return tuple([_term(reader, term, where) for where, term in terms])


def _preferred(reader: Reader, value: Any) -> tuple[WeightedTerm, ...]:
    if value is None:
        return ()
    found = []
    for path, weighted in reader.objects(value, f"{_NODE_AFFINITY}.{_PREFERRED}"):
        where = f"{path}.preference"
        weight = reader.integer(weighted.get("weight"), f"{path}.weight")
        if not 1 <= weight <= 100:
            reader.error(f"{path}.weight", weighted.get("weight"), "must be in the range 1-100")
        term = _term(reader, reader.object(weighted.get("preference"), where), where)
        _check_integers(reader, term, where)
        found.append(WeightedTerm(weight, term))
    return tuple(found)


def _check_integers(reader: Reader, term: Term, path: str) -> None:
    """Note what makes kube-scheduler give up on the pod; in a required term it only fails to match."""
    for index, requirement in enumerate(term.expressions):
        if requirement.operator in ("Gt", "Lt") and not _is_integer(requirement.values):
            where = f"{path}.matchExpressions[{index}].values"
            reader.error(where, list(requirement.values), "must be one integer, for Gt and Lt")


def _is_integer(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and parse_integer(values[0]) is not None


def _term(reader: Reader, term: Mapping[str, Any], path: str) -> Term:
    return Term(
        _requirements(reader, term.get("matchExpressions"), f"{path}.matchExpressions"),
        _requirements(reader, term.get("matchFields"), f"{path}.matchFields"),
    )


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
