"""All errors of a policy are reported at once: place, value and remedy."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.random.random_json import replace_somewhere
from webhook.documents.field import InvalidInput
from webhook.policy.loader import built_in_policy, parse_policy

HEAD = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
USAGE = {"nodeUsage": {"allow": ["a"]}}
CARD = {"name": "x", "resources": ["example.com/gpu"], "card": "example.com/gpu"}
LABEL_VALUE = "must be a label value: at most 63 letters, digits, '-', '_', '.', its ends letters or digits"
LABEL_KEY = "must be a label key: NAME or DOMAIN/NAME, NAME at most 63 letters, digits, '-', '_', '.'"
SUBDOMAIN = "must be a DNS subdomain: lower case letters, digits, '-' and '.', at most 253, like maip.mxsf.io"
OWN_DOMAIN = f"{SUBDOMAIN}, and not Kubernetes' own"
LONG = "c" * 60
CARD_NAME = "must be VENDOR-DOMAIN/CARD like nvidia.com/gpu, CARD at most 48 letters, digits, '-', '_', '.'"
RESOURCE = "must be an extended resource like nvidia.com/gpu, or a prefix like nvidia.com/mig-*"
SUFFIX = "must be the end of a product's label value like -SHARED or -MIG-1g.10gb, without *"
TAINT_KEY = "must be a taint key like example.com/maintenance, or a domain with / such as example.com/ for all its keys"
HANDLING = "must be inject, warn or leave, or a mapping with podAnnotations and namespaceDefaults"
UNKNOWN = "Forbidden: unknown field; {}`placement-webhook policy schema` lists the known ones"
MEANT_DOMAIN = UNKNOWN.format("did you mean keyDomain? ")


def errors(document: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        parse_policy(document if isinstance(document, str) else json.dumps(document), "p.yaml")
    return [str(error) for error in refused.value.errors]


def with_type(**fields: Any) -> dict[str, Any]:
    return {"workloadTypes": {"t": USAGE | fields}}


def with_card(**fields: Any) -> dict[str, Any]:
    return {"accelerators": [CARD | fields]}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        # the wrong type
        ([], "spec: Invalid value: []; must be a mapping of keys to values"),
        ({"productAffinity": "true"}, 'spec.productAffinity: Invalid value: "true"; must be true or false'),
        ({"productAffinity": 1}, "spec.productAffinity: Invalid value: 1; must be true or false"),
        ({"accelerators": {}}, "spec.accelerators: Invalid value: {}; must be a list"),
        ({"accelerators": [7]}, "spec.accelerators[0]: Invalid value: 7; must be a mapping of keys to values"),
        ({"binPacking": {"weight": "50"}}, 'spec.binPacking.weight: Invalid value: "50"; must be an integer'),
        ({"binPacking": {"weight": True}}, "spec.binPacking.weight: Invalid value: true; must be an integer"),
        ({"binPacking": {"weight": 1.0}}, "spec.binPacking.weight: Invalid value: 1.0; must be an integer"),
        ({"workloadTypes": []}, "spec.workloadTypes: Invalid value: []; must be a mapping of keys to values"),
        ({"allowedSchedulers": "volcano"}, 'spec.allowedSchedulers: Invalid value: "volcano"; must be a list'),
        (
            with_type(nodeUsage={"allow": [1]}),
            "spec.workloadTypes.t.nodeUsage.allow[0]: Invalid value: 1; must be text; put it in quotes",
        ),
        (
            with_card(extraTolerations=[{"key": "x", "value": True}]),
            "spec.accelerators[0].extraTolerations[0].value: Invalid value: true; must be text; put it in quotes",
        ),
        ({"keyDomain": []}, "spec.keyDomain: Invalid value: []; must be text"),
        ({"withoutAccelerator": False}, f"spec.withoutAccelerator: Invalid value: false; {HANDLING}"),
        (
            with_type(extraTolerations=[{"key": "spot", "effect": "NoExecute", "tolerationSeconds": -1}]),
            (
                "spec.workloadTypes.t.extraTolerations[0].tolerationSeconds: Invalid value: -1; "
                "must be in [0, 1000000000]"
            ),
        ),
        # missing and unknown
        ({"workloadTypes": {"t": {}}}, "spec.workloadTypes.t.nodeUsage: Required value: must be set"),
        (with_type(nodeUsage={}), "spec.workloadTypes.t.nodeUsage.allow: Required value: must be set"),
        (
            {"accelerators": [{"name": "x", "resources": ["a/b"]}]},
            "spec.accelerators[0].card: Required value: must be set",
        ),
        ({"keydomain": "x"}, f"spec.keydomain: {MEANT_DOMAIN}"),
        ({"key_domain": "example.com"}, f"spec.key_domain: {MEANT_DOMAIN}"),
        (
            with_type(bin_packing=True),
            "spec.workloadTypes.t.bin_packing: " + UNKNOWN.format("did you mean binPacking? "),
        ),
        (with_card(product="x"), "spec.accelerators[0].product: " + UNKNOWN.format("")),
        # out of range, not one of a few
        ({"binPacking": {"weight": 0}}, "spec.binPacking.weight: Invalid value: 0; must be in [1, 100]"),
        ({"binPacking": {"weight": 101}}, "spec.binPacking.weight: Invalid value: 101; must be in [1, 100]"),
        (
            with_type(nodeUsage={"allow": ["a"], "prefer": {"a": 0}}),
            "spec.workloadTypes.t.nodeUsage.prefer.a: Invalid value: 0; must be in [1, 100]",
        ),
        (
            {"placementCheck": {"mode": "strict"}},
            'spec.placementCheck.mode: Unsupported value: "strict"; supported values: "off", "warn", "deny"',
        ),
        (
            {"packGpus": {"mix": [{"cards": 0}]}},
            "spec.packGpus.mix[0].cards: Invalid value: 0; must be in [1, 1000000]",
        ),
        (
            {"placementCheck": {"profile": "Default"}},
            (
                'spec.placementCheck.profile: Unsupported value: "Default"; supported values: "default", "binpack", '
                '"pack-gpus"'
            ),
        ),
        (
            {"workloadObjects": {"invalidAnnotations": "ignore"}},
            'spec.workloadObjects.invalidAnnotations: Unsupported value: "ignore"; supported values: "deny", "warn"',
        ),
        (
            {"workloadObjects": {"report": "never"}},
            'spec.workloadObjects.report: Unsupported value: "never"; supported values: "problems", "always"',
        ),
        (
            {"workloadObjects": {"enabled": "no"}},
            'spec.workloadObjects.enabled: Invalid value: "no"; must be true or false',
        ),
        (
            {"invalidAnnotations": None},
            'spec.invalidAnnotations: Unsupported value: null; supported values: "deny", "warn"',
        ),
        # names
        (
            {"requireType": "batch"},
            'spec.requireType: Unsupported value: "batch"; supported values: "warn", "deny", "training", "inference"',
        ),
        (
            {"formerKeyDomains": ["maip.mxsf.io"]},
            'spec.formerKeyDomains: Invalid value: ["maip.mxsf.io"]; must not hold keyDomain, which is in force',
        ),
        ({"keyDomain": "MAIP"}, f'spec.keyDomain: Invalid value: "MAIP"; {OWN_DOMAIN}'),
        ({"keyDomain": ""}, f'spec.keyDomain: Invalid value: ""; {OWN_DOMAIN}'),
        ({"keyDomain": "kubernetes.io"}, f'spec.keyDomain: Invalid value: "kubernetes.io"; {OWN_DOMAIN}'),
        (with_card(card=f"a.b/{LONG}"), f'spec.accelerators[0].card: Invalid value: "a.b/{LONG}"; {CARD_NAME}'),
        ({"workloadTypes": {"a b": USAGE}}, f'spec.workloadTypes.a b: Invalid value: "a b"; {LABEL_VALUE}'),
        ({"topologyAliases": {"row": "a b"}}, f'spec.topologyAliases.row: Invalid value: "a b"; {LABEL_KEY}'),
        ({"binPacking": {"labelKey": "a/b/c"}}, f'spec.binPacking.labelKey: Invalid value: "a/b/c"; {LABEL_KEY}'),
        ({"binPacking": {"labelValue": ""}}, f'spec.binPacking.labelValue: Invalid value: ""; {LABEL_VALUE}'),
        (
            with_card(card="gpu card"),
            f'spec.accelerators[0].card: Invalid value: "gpu card"; {CARD_NAME}',
        ),
        (with_card(resources=["gpu"]), f'spec.accelerators[0].resources[0]: Invalid value: "gpu"; {RESOURCE}'),
        (with_card(resources=["a.b/c*d"]), f'spec.accelerators[0].resources[0]: Invalid value: "a.b/c*d"; {RESOURCE}'),
        (
            with_card(resources=["a.b/[cd]"]),
            f'spec.accelerators[0].resources[0]: Invalid value: "a.b/[cd]"; {RESOURCE}',
        ),
        (
            with_type(allowedNamespaces=["Team"]),
            (
                'spec.workloadTypes.t.allowedNamespaces[0]: Invalid value: "Team"; '
                "must be a namespace, or a pattern with * such as team-a-*"
            ),
        ),
        (
            with_type(allowedNamespaces=["team-?"]),
            (
                'spec.workloadTypes.t.allowedNamespaces[0]: Invalid value: "team-?"; '
                "must be a namespace, or a pattern with * such as team-a-*"
            ),
        ),
        (
            {"allowedProducts": {"NVIDIA H20": ["a"]}},
            (
                'spec.allowedProducts.NVIDIA H20: Invalid value: "NVIDIA H20"; '
                "must be a product like NVIDIA-H20, or a pattern with * such as NVIDIA-A100*"
            ),
        ),
        (
            {"allowedProducts": {"NVIDIA-H20": ["Team"]}},
            (
                'spec.allowedProducts.NVIDIA-H20[0]: Invalid value: "Team"; '
                "must be a namespace, or a pattern with * such as team-a-*"
            ),
        ),
        (
            {"optOutNamespaces": ["Team"]},
            (
                'spec.optOutNamespaces[0]: Invalid value: "Team"; '
                "must be a namespace, or a pattern with * such as team-a-*"
            ),
        ),
        ({"optOutNamespaces": "team"}, 'spec.optOutNamespaces: Invalid value: "team"; must be a list'),
        (
            {"allowedProducts": ["NVIDIA-H20"]},
            'spec.allowedProducts: Invalid value: ["NVIDIA-H20"]; must be a mapping of keys to values',
        ),
        # products, memory and pods without a card
        ({"productVariants": ["SHARED"]}, f'spec.productVariants[0]: Invalid value: "SHARED"; {SUFFIX}'),
        ({"productVariants": ["-MIG-*"]}, f'spec.productVariants[0]: Invalid value: "-MIG-*"; {SUFFIX}'),
        (
            {"productVariants": [f"-{number}" for number in range(11)]},
            (
                'spec.productVariants: Invalid value: ["-0", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9", '
                '"-10"]; must hold at most 10 suffixes'
            ),
        ),
        # states of nodes that pass
        ({"temporaryTaints": ["startup-*"]}, f'spec.temporaryTaints[0]: Invalid value: "startup-*"; {TAINT_KEY}'),
        ({"temporaryTaints": ["/"]}, f'spec.temporaryTaints[0]: Invalid value: "/"; {TAINT_KEY}'),
        (
            {"temporaryTaints": ["example.com/", "example.com/"]},
            'spec.temporaryTaints: Invalid value: ["example.com/", "example.com/"]; must not hold a value twice',
        ),
        (
            {"gpuMemoryTolerancePercent": 51},
            "spec.gpuMemoryTolerancePercent: Invalid value: 51; must be in [0, 50]",
        ),
        (
            {"gpuMemoryTolerancePercent": 2.5},
            "spec.gpuMemoryTolerancePercent: Invalid value: 2.5; must be an integer",
        ),
        (
            {"withoutAccelerator": "deny"},
            (
                'spec.withoutAccelerator: Invalid value: "deny"; must be inject, warn or leave, or a mapping with '
                "podAnnotations and namespaceDefaults"
            ),
        ),
        (
            {"withoutAccelerator": {"podAnnotations": "deny"}},
            (
                'spec.withoutAccelerator.podAnnotations: Unsupported value: "deny"; '
                'supported values: "inject", "warn", "leave"'
            ),
        ),
        (
            {"binPacking": {"namespaces": "own"}},
            'spec.binPacking.namespaces: Unsupported value: "own"; supported values: "all", "same"',
        ),
        # tolerations
        (
            with_card(extraTolerations=[{"operator": "Exists"}]),
            "spec.accelerators[0].extraTolerations[0].key: Required value: must be set",
        ),
        (
            with_type(extraTolerations=[{"key": "spot", "effect": "NoEntry"}]),
            (
                'spec.workloadTypes.t.extraTolerations[0].effect: Unsupported value: "NoEntry"; '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ),
        ),
        (
            with_type(extraTolerations=[{"key": "spot", "operator": "Exists", "value": "true"}]),
            (
                'spec.workloadTypes.t.extraTolerations[0]: Invalid value: {"key": "spot", "operator": "Exists", '
                '"value": "true"}; value must be absent with operator Exists'
            ),
        ),
        (
            with_type(extraTolerations=[{"key": "spot", "tolerationSeconds": 60}]),
            (
                'spec.workloadTypes.t.extraTolerations[0]: Invalid value: {"key": "spot", "tolerationSeconds": 60}; '
                "tolerationSeconds needs effect NoExecute"
            ),
        ),
        (
            with_type(extraTolerations=[{"key": "maip.mxsf.io/control-plane", "operator": "Exists"}]),
            (
                'spec.workloadTypes.t.extraTolerations[0].key: Invalid value: "maip.mxsf.io/control-plane"; '
                "no pod may tolerate the control plane; name the key of another taint"
            ),
        ),
        (
            {"keyDomain": "example.com"} | with_card(extraTolerations=[{"key": "example.com/control-plane"}]),
            (
                'spec.accelerators[0].extraTolerations[0].key: Invalid value: "example.com/control-plane"; '
                "no pod may tolerate the control plane; name the key of another taint"
            ),
        ),
        # lists
        (
            with_type(nodeUsage={"allow": []}),
            "spec.workloadTypes.t.nodeUsage.allow: Invalid value: []; must hold at least one value",
        ),
        (
            with_type(nodeUsage={"allow": ["a", "a"]}),
            'spec.workloadTypes.t.nodeUsage.allow: Invalid value: ["a", "a"]; must not hold a value twice',
        ),
        (with_card(resources=[]), "spec.accelerators[0].resources: Invalid value: []; must hold at least one value"),
        ({"accelerators": []}, "spec.accelerators: Invalid value: []; must hold at least one value"),
        *(
            (with_card(resources=[name]), f'spec.accelerators[0].resources[0]: Invalid value: "{name}"; {RESOURCE}')
            for name in (
                "example.com/gpu-",
                "example.com/gpu.",
                "example.com/",
                "gpu",
                "gpu*",
                "example.com/*",
                "*/gpu",
            )
        ),
        ({"workloadTypes": {}}, "spec.workloadTypes: Invalid value: {}; must hold at least one workload type"),
        # fields that depend on others
        (
            with_type(nodeUsage={"allow": ["a"], "prefer": {"b": 1}}),
            (
                'spec.workloadTypes.t.nodeUsage.prefer: Invalid value: {"b": 1}; '
                '"b" must stand in allow too: a pod can only prefer what it may use'
            ),
        ),
        (
            {"allowedSchedulers": ["default-scheduler"]},
            (
                'spec.allowedSchedulers: Invalid value: ["default-scheduler"]; '
                'must hold "volcano", the schedulerName of workloadTypes.training'
            ),
        ),
        (
            with_type(schedulerName="mine"),
            (
                'spec.allowedSchedulers: Invalid value: ["default-scheduler", "volcano", "kai-scheduler", '
                '"binpack-scheduler"]; must hold "mine", the schedulerName of workloadTypes.t'
            ),
        ),
    ],
    ids=lambda value: json.dumps(value)[:70] if not isinstance(value, str) else "",
)
def test_an_error_names_the_field_its_value_and_what_would_be_valid(spec: Any, wanted: str) -> None:
    assert errors(HEAD | {"spec": spec}) == [f"p.yaml: {wanted}"]


def test_accelerators_need_names_of_their_own() -> None:
    (error,) = errors(HEAD | {"spec": {"accelerators": [CARD, CARD | {"card": "example.com/npu"}]}})

    assert error.startswith("p.yaml: spec.accelerators: Invalid value: [")
    assert error.endswith("; each accelerator must have a name of its own")


def test_all_errors_are_reported_at_once() -> None:
    document = {
        "apiVersion": "v1",
        "metadata": {"name": "My Policy", "namespace": "x", "labels": {"a": 1}},
        "spec": {
            "keyDomain": "X",
            "workloadTypes": {"t": {"nodeUsage": {"allow": [], "prefer": {"x": 0}}, "binPacking": "no"}, "u": {}},
            "accelerators": [CARD | {"resources": ["gpu"]}, {}],
            "placementCheck": {"floor": "none"},
            "new": 1,
        },
        "status": {},
    }

    found = {error.removeprefix("p.yaml: ").partition(": ")[0] for error in errors(document)}

    assert found == {
        "apiVersion",
        "kind",
        "metadata.name",
        "metadata.namespace",
        "metadata.labels.a",
        "spec.keyDomain",
        "spec.workloadTypes.t.nodeUsage.allow",
        "spec.workloadTypes.t.nodeUsage.prefer.x",
        "spec.workloadTypes.t.binPacking",
        "spec.workloadTypes.u.nodeUsage",
        "spec.accelerators[0].resources[0]",
        "spec.accelerators[1].name",
        "spec.accelerators[1].resources",
        "spec.accelerators[1].card",
        "spec.placementCheck.floor",
        "spec.new",
        "status",
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "", ['p.yaml: Invalid value: "0 documents"; must hold one PlacementPolicy, holds 0 documents'], id="empty"
        ),
        pytest.param(
            "# off\n",
            ['p.yaml: Invalid value: "0 documents"; must hold one PlacementPolicy, holds 0 documents'],
            id="comments",
        ),
        pytest.param(
            "a: 1\n---\nb: 2\n",
            ['p.yaml: Invalid value: "2 documents"; must hold one PlacementPolicy, holds 2 documents'],
            id="several",
        ),
        pytest.param(
            "a: [",
            ['p.yaml:2:1: Invalid value: ""; must be YAML or JSON: did not find expected node content'],
            id="no YAML",
        ),
        pytest.param(
            "- a\n", ['p.yaml: Invalid value: ["a"]; must be an object with apiVersion and kind'], id="a list"
        ),
        pytest.param(
            "{}",
            ["p.yaml: apiVersion: Required value: must be set", "p.yaml: kind: Required value: must be set"],
            id="neither version nor kind",
        ),
        pytest.param(
            "{apiVersion: v1, kind: ConfigMap}",
            [
                'p.yaml: apiVersion: Unsupported value: "v1"; supported values: "placement.maip.mxsf.io/v1alpha1"',
                'p.yaml: kind: Unsupported value: "ConfigMap"; supported values: "PlacementPolicy"',
            ],
            id="another version and kind",
        ),
    ],
)
def test_text_that_is_not_one_policy_is_rejected(text: str, wanted: list[str]) -> None:
    assert errors(text) == wanted


DEFAULT = built_in_policy().document.model_dump(mode="json", by_alias=True)


@given(st.data())
def test_any_policy_is_valid_or_rejected_with_errors(data: st.DataObject) -> None:
    document = deepcopy(DEFAULT)
    for _ in range(data.draw(st.integers(1, 2))):
        replace_somewhere(document, data)

    with suppress(InvalidInput):
        assert parse_policy(json.dumps(document), "p.yaml").revision


def test_fields_that_depend_on_others_are_named_beside_every_other_error() -> None:
    document = {
        **HEAD,
        "spec": {
            "allowedSchedulers": ["default-scheduler"],
            "workloadTypes": {
                "a": {"nodeUsage": {"allow": ["x"], "prefer": {"y": 5, "z": 0}}, "schedulerName": "one"},
                "b": {"nodeUsage": {"allow": []}, "schedulerName": "two"},
            },
        },
    }

    reported = "\n".join(errors(document))

    assert "spec.workloadTypes.a.nodeUsage.prefer.z: Invalid value: 0; must be in [1, 100]" in reported
    assert '"y", "z" must stand in allow too' in reported
    assert "spec.workloadTypes.b.nodeUsage.allow: Invalid value: []" in reported
    both = '"one", the schedulerName of workloadTypes.a, and "two", the schedulerName of workloadTypes.b'
    assert f'spec.allowedSchedulers: Invalid value: ["default-scheduler"]; must hold {both}' in reported


def test_a_rule_on_several_fields_holds_beside_the_defaults() -> None:
    scheduled = {"t": {"nodeUsage": {"allow": ["a"]}, "schedulerName": "mine"}}

    found = errors({**HEAD, "spec": {"keyDomain": "X", "workloadTypes": scheduled}})

    assert [error.partition("; ")[2] for error in found] == [
        OWN_DOMAIN,
        'must hold "mine", the schedulerName of workloadTypes.t',
    ]
