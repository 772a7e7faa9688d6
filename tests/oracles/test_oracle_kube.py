"""`webhook.kube` reads quantities, requests, selectors and tolerations as the plain versions of the oracle do."""

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle_kube, oracle_resources
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.index.node_selector import any_matches, read_node_selector
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube import quantity, selectors
from webhook.kube.deadline import never
from webhook.kube.pod import amounts as resource_names
from webhook.kube.pod.resources import PodResources, read_pod_resources
from webhook.kube.pod.taints import Taint, Toleration, any_tolerates
from webhook.kube.reader import Reader
from webhook.kube.selectors import read_label_selector, selector_matches
from webhook.placement.framework.node_inclusion import required_affinity_matches
from webhook.placement.pod.pod_info import PodInfo

Object = dict[str, Any]

_digits = st.text("0123456789", max_size=21)
_suffixes = st.one_of(
    st.sampled_from(("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")),
    st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-30, 30)),
)
_numbers = st.one_of(
    st.text("0123456789", min_size=1, max_size=21),
    st.builds("{}.{}".format, st.text("0123456789", min_size=1, max_size=21), _digits),
    st.builds(".{}".format, st.text("0123456789", min_size=1, max_size=21)),
)
_quantities = st.builds("{}{}{}".format, st.sampled_from(("", "", "+", "-")), _numbers, _suffixes)


@given(_quantities)
def test_a_quantity_is_rounded_away_from_zero(text: str) -> None:
    assert quantity.value(text) == oracle_resources.units_of(text)
    assert quantity.milli_value(text) == oracle_resources.milli_of(text)


_AMOUNTS = ("0", "1", "2", "3", "100m", "0.5m", "1500u", "1n", "1.5", "1Ki", "1e3", "129M")
_RESOURCES = ("cpu", "cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi")


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


def _fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


# Most containers request some cpu: faults show where the same resource meets in several places.
_amounts = st.dictionaries(st.sampled_from(_RESOURCES), st.sampled_from(_AMOUNTS), min_size=1, max_size=2)
_requests = st.fixed_dictionaries({"requests": _amounts})
_limits = st.fixed_dictionaries({"limits": _amounts})
_requirements = st.one_of(_requests, _requests, _limits, _fields(requests=_maybe(_amounts), limits=_maybe(_amounts)))


def _containers(prefix: str, policies: tuple[str | None, ...]) -> st.SearchStrategy[list[Object]]:
    container = st.fixed_dictionaries(
        {"restartPolicy": st.sampled_from(policies)}, optional={"resources": _maybe(_requirements)}
    )
    return st.lists(container, min_size=1, max_size=3).map(
        lambda found: [each | {"name": f"{prefix}{index}"} for index, each in enumerate(found)]
    )


_statuses = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(("c0", "c1", "i0", "i1"))},
        optional={"resources": _maybe(_fields(requests=_amounts)), "allocatedResources": _maybe(_amounts)},
    ),
    max_size=2,
)
_conditions = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("Ready", "PodResizePending", "PodResizePending")),
        "reason": st.sampled_from(("Infeasible", "Deferred")),
    }
)
_pods = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"containers": _containers("c", (None,))},
            optional={
                "initContainers": _maybe(_containers("i", (None, "OnFailure", "Always", "Always"))),
                "overhead": _maybe(_amounts),
                "resources": _maybe(_requirements),
            },
        ),
        "status": _fields(
            containerStatuses=_statuses,
            initContainerStatuses=_statuses,
            conditions=_maybe(st.lists(_conditions, max_size=2)),
            resources=_maybe(_fields(requests=_amounts)),
            allocatedResources=_maybe(_amounts),
        ),
    }
)


def _read(pod: Object, *, running: bool) -> PodResources:
    reader = Reader(pod)
    found = read_pod_resources(reader, running=running)
    reader.finish()
    return found


@settings(max_examples=examples(1000))
@given(_pods)
def test_a_waiting_pod_requests_what_its_spec_says(pod: Object) -> None:
    assert _read(pod, running=False).requests == oracle_resources.pod_requests(pod)
    assert _read(pod, running=False).scoring_requests == oracle_resources.scored_of(pod)


_SHRUNK_TO_NOTHING: Object = {
    "spec": {"containers": [{"name": "c0"}], "resources": {"requests": {"cpu": "0"}}},
    "status": {
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "0"}}}],
        "resources": {},
    },
}


@settings(max_examples=examples(1000))
@example(_SHRUNK_TO_NOTHING)
@given(_pods)
def test_a_pod_on_a_node_takes_what_its_spec_and_its_status_say(pod: Object) -> None:
    read = _read(pod, running=True)
    assert read.requests == oracle_resources.requested_by(pod)
    assert read.non_zero_requested == oracle_resources.counted_of(pod)


@given(
    st.builds(
        "{}{}".format,
        st.sampled_from(("", "hugepages-", "attachable-volumes-", "requests.", "node.kubernetes.io/", "example.com/")),
        st.sampled_from(("cpu", "memory", "ephemeral-storage", "pods", "storage", "2Mi", "gpu")),
    )
)
def test_a_resource_is_of_the_same_kind(name: str) -> None:
    assert resource_names.is_extended_resource(name) is oracle_resources.is_extended_resource(name)
    assert resource_names.is_scalar_resource(name) is oracle_resources.is_scalar_resource(name)
    assert resource_names.is_schedulable_resource(name) is oracle_resources.is_schedulable_resource(name)


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like")
_VALUES = (
    "",
    "a",
    "b",
    "4",
    "5",
    "+5",
    "-5",
    "05",
    "5.0",
    " 5",
    "1_0",
    "٥",
    "9223372036854775807",
    "9223372036854775808",
)
_KEYS = ("k", "l", "m")
_labels = st.dictionaries(st.sampled_from(_KEYS[:2]), st.sampled_from(_VALUES))
_expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(_KEYS),
        "operator": st.sampled_from(_OPERATORS),
        "values": _maybe(st.lists(st.sampled_from(_VALUES), max_size=2)),
    }
)
_field_requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("metadata.name", "metadata.name", "metadata.uid")),
        "operator": st.sampled_from(("In", "NotIn", "Exists")),
        "values": st.lists(st.sampled_from(("n", "other", "")), max_size=2),
    }
)
_terms = _fields(
    matchExpressions=_maybe(st.lists(_expressions, max_size=2)),
    matchFields=_maybe(st.lists(_field_requirements, max_size=2)),
)
_node_affinity = _fields(
    requiredDuringSchedulingIgnoredDuringExecution=_maybe(
        _fields(nodeSelectorTerms=_maybe(st.lists(_terms, max_size=3)))
    )
)
_label_selectors = _maybe(
    _fields(matchLabels=_maybe(_labels), matchExpressions=_maybe(st.lists(_expressions, max_size=2)))
)


@given(st.one_of(st.sampled_from(_VALUES), st.text("+-_ 0123456789", max_size=22)))
def test_an_integer_of_gt_and_lt_is_one_of_go(text: str) -> None:
    assert selectors.parse_integer(text) == oracle_kube.int64(text)


@given(_expressions, _labels)
def test_a_requirement_matches_the_same_labels(requirement: Object, labels: dict[str, str]) -> None:
    matches = selectors.requirement_matches(requirement, labels)
    assert matches is oracle_kube.requirement_matches(requirement, labels)


@given(_field_requirements, st.sampled_from(("n", "other", "")))
def test_a_requirement_of_a_field_matches_the_same_names(requirement: Object, name: str) -> None:
    matches = selectors.field_requirement_matches(requirement, name)
    assert matches is oracle_kube.field_matches(requirement, name)


_near = st.integers(-2, 2).map(str)


@given(st.sampled_from(("Gt", "Lt")), _near, _near)
def test_gt_and_lt_compare_in_the_same_way(operator: str, label: str, bound: str) -> None:
    requirement = {"key": "k", "operator": operator, "values": [bound]}
    matches = selectors.requirement_matches(requirement, {"k": label})
    assert matches is oracle_kube.requirement_matches(requirement, {"k": label})


_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def _as_parsed(term: Object) -> Object:
    """Return the term as kube-scheduler parses it: empty, so it matches no node, with an invalid label value."""
    values = [value for each in term.get("matchExpressions") or () for value in each.get("values") or ()]
    return term if all(map(_LABEL_VALUE.fullmatch, values)) else {}


@given(_terms, _labels)
@example({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["+5"]}]}, {})
def test_a_term_matches_the_same_nodes(term: Object, labels: dict[str, str]) -> None:
    read = read_node_selector(Reader({"selector": {"nodeSelectorTerms": [term]}}), "selector")
    assert read is not None
    matches = any_matches(read, LabelColumns([labels]), {"n": 0})
    assert bool(matches[0]) is oracle_kube.term_matches(_as_parsed(term), labels, "n")


@given(_fields(nodeSelector=_maybe(_labels), affinity=_maybe(_fields(nodeAffinity=_maybe(_node_affinity)))), _labels)
def test_a_pod_may_be_on_the_same_nodes(spec: Object, labels: dict[str, str]) -> None:
    pod = PodInfo.of(Reader(make_pod().spec(**spec).obj()))
    required: Any = oracle_kube.required_node_selector(spec)
    if required is not None and required.get("nodeSelectorTerms"):
        required["nodeSelectorTerms"] = [*map(_as_parsed, required["nodeSelectorTerms"])]
    nodes = Snapshot.of([NodeInfo.of(Node.of(make_node_object("n", labels=labels)))])
    matches = required_affinity_matches(pod, nodes, never)
    assert bool(matches[0]) is oracle_kube.required_node_affinity_matches(spec, labels, "n")


@given(_label_selectors, _labels)
def test_a_label_selector_selects_the_same(selector: Object | None, labels: dict[str, str]) -> None:
    expected = oracle_kube.label_selector_matches(selector, labels)
    read = read_label_selector(Reader({"selector": selector}), "selector")
    assert selector_matches(read, labels) is expected


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_taints = st.fixed_dictionaries(
    {"key": st.sampled_from(("a", "b")), "effect": st.sampled_from(_EFFECTS)},
    optional={"value": st.sampled_from((None, "", "1", "2"))},
)
_tolerations = _fields(
    key=st.sampled_from((None, "", "a", "b")),
    operator=st.sampled_from((None, "", "Equal", "Exists", "Gt", "Lt", "Like")),
    value=st.sampled_from((None, "", "1", "2")),
    effect=st.sampled_from((None, "", *_EFFECTS)),
)


def test_each_toleration_tolerates_the_same_taints() -> None:
    """Of all combinations: a random one seldom meets its taint."""
    operators = (None, "", "Equal", "Exists", "Gt", "Lt", "Like")
    for parts in product((None, "", "a", "b"), operators, (None, "1", "2"), (None, "", *_EFFECTS)):
        toleration = dict(zip(("key", "operator", "value", "effect"), parts, strict=True))
        for key, value, effect in product(("a", "b"), (None, "", "1"), _EFFECTS):
            taint = {"key": key, "value": value, "effect": effect}
            expected = oracle_kube.tolerates(toleration, taint)
            assert Toleration.of(toleration).tolerates(Taint.of(taint)) is expected, (toleration, taint)
            assert any_tolerates({Toleration.of(toleration)}, Taint.of(taint)) is expected, (toleration, taint)


@given(st.lists(_tolerations, max_size=4), _taints)
def test_one_of_many_tolerations_is_enough(tolerations: list[Object], taint: Object) -> None:
    expected = oracle_kube.tolerates_any([*tolerations], taint)
    assert any_tolerates({*map(Toleration.of, tolerations)}, Taint.of(taint)) is expected


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["1", "2", "3"])
def test_comparing_tolerations_tolerate_nothing(operator: str, value: str) -> None:
    toleration = {"key": "a", "operator": operator, "value": value}
    taint = {"key": "a", "value": "2", "effect": "NoSchedule"}
    assert Toleration.of(toleration).tolerates(Taint.of(taint)) is False
    assert oracle_kube.tolerates(toleration, taint) is False
