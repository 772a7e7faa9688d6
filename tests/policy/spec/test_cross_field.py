"""Settings of a workload type that contradict each other or have no effect."""

import json
from typing import Any

import pytest

from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND, PolicySpec

ALIASES = '"host", "rack", "nvlink", "zone"'
KNOWN = f"must be one of topologyAliases ({ALIASES}), or a topology key such as kubernetes.io/hostname"
UNDONE = "binPacking over kubernetes.io/hostname would undo it; set mode: required, binPacking: false or another one"
WITHOUT_WEIGHT = "has an effect only with mode: preferred and form: antiAffinity"


def policy_of(spread: dict[str, Any], fields: dict[str, Any], spec: dict[str, Any]) -> Policy:
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    workload_type = {"nodeUsage": {"allow": ["a"]}, "spread": spread, **fields}
    return parse_policy(json.dumps({**head, "spec": {**spec, "workloadTypes": {"t": workload_type}}}), "p.yaml")


def errors(spread: dict[str, Any], fields: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    try:
        policy_of(spread, fields, spec)
    except InvalidInput as error:
        return [str(each).removeprefix("p.yaml: spec.workloadTypes.t.spread.") for each in error.errors]
    return []


@pytest.mark.parametrize(
    ("spread", "wanted"),
    [
        ({"topology": "rack"}, []),
        ({"topology": "example.com/block"}, []),
        ({"topology": "hosts"}, [f'topology: Invalid value: "hosts"; {KNOWN}']),
        ({"maxSkew": 2}, ["maxSkew: Invalid value: 2; has no effect without form: topologySpread"]),
        ({"maxSkew": 2, "form": "topologySpread"}, []),
        ({"maxSkew": 0}, ["maxSkew: Invalid value: 0; must be at least 1"]),
        ({"maxSkew": 1001}, ["maxSkew: Invalid value: 1001; must be at most 1000"]),
        ({"weight": 50}, []),
        ({"weight": 50, "mode": "required"}, [f"weight: Invalid value: 50; {WITHOUT_WEIGHT}"]),
        ({"weight": 50, "form": "topologySpread"}, [f"weight: Invalid value: 50; {WITHOUT_WEIGHT}"]),
        ({"weight": 100, "maxSkew": 1, "mode": "required"}, []),
        ({"mode": "hard"}, ['mode: Unsupported value: "hard"; supported values: "preferred", "required"']),
        ({"form": "x"}, ['form: Unsupported value: "x"; supported values: "antiAffinity", "topologySpread"']),
    ],
    ids=str,
)
def test_a_field_without_effect_is_an_error(spread: dict[str, Any], wanted: list[str]) -> None:
    assert errors(spread, {}, {}) == wanted


@pytest.mark.parametrize(
    ("spread", "spec", "is_undone"),
    [
        ({"topology": "host"}, {}, True),
        ({"topology": "kubernetes.io/hostname"}, {}, True),
        ({"topology": "zone"}, {}, False),
        ({"topology": "host"}, {"binPacking": {"topologyKey": "topology.kubernetes.io/zone"}}, False),
        ({"topology": "host", "mode": "required"}, {}, False),
        ({}, {}, False),
    ],
    ids=str,
)
def test_a_type_does_not_pack_and_spread_over_one_topology(
    spread: dict[str, Any], spec: dict[str, Any], is_undone: bool
) -> None:
    found = errors(spread, {"binPacking": True}, spec)

    assert found == ([f'topology: Invalid value: "{spread["topology"]}"; {UNDONE}'] if is_undone else [])


def test_other_aliases_are_no_error_of_the_built_in_types() -> None:
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}

    policy = parse_policy(json.dumps({**head, "spec": {"topologyAliases": {}}}), "p.yaml")

    assert policy.spec.topology_aliases == {}


@pytest.mark.parametrize(
    ("qos", "wanted"),
    [
        ({"class": "Guaranteed", "wholeCpus": True, "limitsFromRequests": True, "onMissing": "deny"}, []),
        ({"wholeCpus": False, "onMissing": "warn"}, []),
        ({"wholeCpus": True}, ["wholeCpus: Invalid value: true; has no effect without class: Guaranteed"]),
        ({"onMissing": "deny"}, ['onMissing: Invalid value: "deny"; has no effect without class: Guaranteed']),
        ({"class": "Burstable"}, ['class: Unsupported value: "Burstable"; supported values: "Guaranteed"']),
    ],
    ids=str,
)
def test_fields_of_the_qos_class_need_the_class(qos: dict[str, Any], wanted: list[str]) -> None:
    found = [each.replace("p.yaml: spec.workloadTypes.t.qos.", "") for each in errors({}, {"qos": qos}, {})]

    assert found == wanted


@pytest.mark.parametrize(
    ("within", "spread", "excluded"),
    [
        ("rack", "rack", True),
        ("rack", "topology.kubernetes.io/rack", True),
        ("host", "zone", True),
        ("rack", "host", False),
        ("rack", "zone", False),
        ("rack", None, False),
    ],
)
@pytest.mark.parametrize("mode", ["preferred", "required"])
def test_a_type_does_not_keep_its_pods_together_and_apart(
    within: str, spread: str | None, excluded: bool, mode: str
) -> None:
    found = errors({"topology": spread, "mode": mode}, {"within": {"topology": within}}, {})

    detail = f"contradicts spread.topology {spread}: a gang within one of them is not spread; remove one"
    path = "p.yaml: spec.workloadTypes.t.within.topology"
    assert found == ([f'{path}: Invalid value: "{within}"; {detail}'] if excluded else [])


def test_the_topology_of_a_gang_is_known() -> None:
    wanted = f'p.yaml: spec.workloadTypes.t.within.topology: Invalid value: "racks"; {KNOWN}'
    assert errors({}, {"within": {"topology": "racks"}}, {}) == [wanted]


@pytest.mark.parametrize(
    ("scheduler", "wanted"),
    [
        ({"backend": "kai", "topologyName": "racks"}, []),
        ({"backend": "volcano", "tiers": {"rack": 1, "example.com/block": 2}}, []),
        ({"topologyName": "racks"}, ['topologyName: Invalid value: "racks"; has no effect without backend: kai']),
        (
            {"backend": "kai", "tiers": {"rack": 1}},
            ['tiers: Invalid value: {"rack": 1}; has no effect without backend: volcano'],
        ),
        ({"backend": "volcano", "tiers": {"row": 1}}, [f'tiers: Invalid value: "row"; {KNOWN}']),
        ({"backend": "volcano", "tiers": {"rack": 0}}, ["tiers.rack: Invalid value: 0; must be in [1, 1000000]"]),
    ],
    ids=str,
)
def test_the_domains_of_a_scheduler_are_those_of_its_kind(scheduler: dict[str, Any], wanted: list[str]) -> None:
    found = errors({}, {}, {"schedulers": {"s": scheduler}})

    assert [each.removeprefix("p.yaml: spec.schedulers.s.") for each in found] == wanted


@pytest.mark.parametrize(
    ("types", "limit", "missing"),
    [
        ({"a": "volcano"}, {}, ""),
        ({"a": "volcano"}, {"schedulers": ["volcano"]}, ""),
        ({"a": "default-scheduler", "b": None}, {"schedulers": ["kai-scheduler"]}, ""),
        ({"a": "volcano"}, {"schedulers": []}, "a"),
        ({"a": "default-scheduler", "b": "volcano"}, {"schedulers": ["kai-scheduler"]}, "b"),
        ({"b": "volcano", "a": "default-scheduler"}, {"schedulers": ["kai-scheduler"]}, "b"),
        ({"a": "kai-scheduler", "b": "volcano", "c": "volcano"}, {"schedulers": ["kai-scheduler"]}, "b"),
        ({"a": "volcano", "b": None}, {"schedulers": [], "workloadTypes": ["b"]}, ""),
        ({"a": "volcano", "b": None}, {"schedulers": [], "workloadTypes": ["b", "a"]}, "a"),
    ],
    ids=str,
)
def test_a_namespace_may_use_the_schedulers_of_its_types(
    types: dict[str, str | None], limit: dict[str, Any], missing: str
) -> None:
    """Every namespace may use the default scheduler."""
    named = {name: {"schedulerName": scheduler} if scheduler else {} for name, scheduler in types.items()}
    spec = {
        "allowedSchedulers": ["default-scheduler", "volcano", "kai-scheduler"],
        "namespaceLimits": [{"namespaces": ["lab"], **limit}],
        "workloadTypes": {name: {"nodeUsage": {"allow": ["a"]}, **each} for name, each in named.items()},
    }
    content = json.dumps({"apiVersion": API_VERSION, "kind": KIND, "spec": spec})
    detail = f'must hold "volcano", the schedulerName of workloadTypes.{missing}, or workloadTypes must not'
    shown = json.dumps(limit.get("schedulers"))
    wanted = [f"p.yaml: spec.namespaceLimits[0].schedulers: Invalid value: {shown}; {detail}"] if missing else []

    found: list[str] = []
    try:
        parse_policy(content, "p.yaml")
    except InvalidInput as error:
        found = [str(each) for each in error.errors]

    assert found == wanted


FIELDS = sorted(field.alias or name for name, field in PolicySpec.model_fields.items())
WRONG: list[Any] = [
    None,
    5,
    "x",
    "",
    True,
    [],
    {},
    [5],
    [[]],
    [{}],
    [None],
    {"a": 5},
    {"a": []},
    {"a": {}},
    {"a": None},
]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_a_wrong_type_is_an_error_and_no_fault_of_the_rules_on_several_fields(name: str) -> None:
    for value in WRONG:
        content = json.dumps({"apiVersion": API_VERSION, "kind": KIND, "spec": {name: value}})
        found: Policy | list[str]
        try:
            found = parse_policy(content, "p.yaml")
        except InvalidInput as error:
            found = [each.path for each in error.errors]
        is_named = isinstance(found, Policy) or any(each.startswith(f"p.yaml: spec.{name}") for each in found)
        assert is_named, (value, found)
