"""Policies have the same revision if and only if they have the same meaning."""

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.support.admission import TYPE, admit_pod
from tests.support.objects.builders import make_pod
from webhook.documents.field import InvalidInput
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import Policy

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"


def policy(spec: str = "{}") -> Policy:
    return parse_policy(f"{HEAD}spec: {spec}\n", "p.yaml")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "# a comment\nkind: PlacementPolicy\napiVersion: placement.maip.mxsf.io/v1alpha1\n", id="comments and order"
        ),
        pytest.param(HEAD + "spec: {keyDomain: maip.mxsf.io, productAffinity: true}\n", id="defaults spelled out"),
        pytest.param(HEAD + "spec: {binPacking: {weight: 100}}\n", id="a part spelled out"),
        pytest.param(HEAD + "spec: {withoutAccelerator: {namespaceDefaults: leave}}\n", id="a new part spelled out"),
        pytest.param(
            json.dumps(built_in_policy().document.model_dump(mode="json", by_alias=True)), id="all spelled out, as JSON"
        ),
        pytest.param(HEAD + "metadata: {name: other, labels: {a: b}}\n", id="another name and labels"),
    ],
)
def test_equal_meaning_has_an_equal_revision(text: str) -> None:
    assert parse_policy(text, "p.yaml").revision == built_in_policy().revision


def test_the_order_of_keys_has_no_meaning() -> None:
    one = policy(
        "{workloadTypes: {a: {nodeUsage: {allow: [x, w], prefer: {x: 80, w: 20}}}, b: {nodeUsage: {allow: [z]}}}}"
    )
    two = policy(
        "{workloadTypes: {b: {nodeUsage: {allow: [z]}}, a: {nodeUsage: {prefer: {w: 20, x: 80}, allow: [x, w]}}}}"
    )

    assert one.revision == two.revision


def test_policies_of_one_revision_inject_the_same() -> None:
    pod = make_pod().annotate(TYPE, "a").obj()
    one = policy("{workloadTypes: {a: {nodeUsage: {allow: [x, w], prefer: {x: 80, w: 20}}}}}")
    two = policy("{workloadTypes: {a: {nodeUsage: {allow: [x, w], prefer: {w: 20, x: 80}}}}}")
    assert one.revision == two.revision

    left, right = admit_pod(pod, one), admit_pod(pod, two)

    assert left.outcome == "Patched"
    assert right.outcome == "Patched"
    assert left.operations == right.operations


SPEC = built_in_policy().document.model_dump(mode="json", by_alias=True)["spec"]
OTHERS = {
    "keyDomain": "example.com",
    "formerKeyDomains": ["example.com"],
    "requireType": "warn",
    "workloadTypes": {"training": SPEC["workloadTypes"]["training"]},
    "accelerators": SPEC["accelerators"][:1],
    "productAffinity": False,
    "tolerateAnyProduct": False,
    "productVariants": ["-SHARED"],
    "gpuMemoryTolerancePercent": 0,
    "withoutAccelerator": {"podAnnotations": "warn", "namespaceDefaults": "warn"},
    "allowedProducts": {"NVIDIA-H20": ["team-a"]},
    "namespaceLimits": [{"namespaces": ["team-a"], "maxCardsPerPod": 8}],
    "binPacking": SPEC["binPacking"] | {"weight": 99},
    "topologyAliases": {},
    "allowedSchedulers": [*SPEC["allowedSchedulers"], "mine"],
    "schedulers": {"gang-scheduler": {"backend": "coscheduling"}},
    "queueing": "kueue",
    "defaultPriorityClass": "normal",
    "optOutNamespaces": [],
    "placementCheck": SPEC["placementCheck"] | {"mode": "deny"},
    "packGpus": {"mix": [{"cards": 8}]},
    "nodeTemplates": [{"name": "gpu-h20", "capacity": {"nvidia.com/gpu": 8}}],
    "temporaryTaints": ["example.com/maintenance"],
    "workloadKinds": [
        {"group": "example.com", "kind": "FooJob", "resource": "foojobs", "templates": [{"path": "spec.template"}]}
    ],
    "invalidAnnotations": "warn",
    "workloadObjects": {"enabled": True, "report": "always"},
    "exemptions": [{"users": ["jane"], "reason": "an operator"}],
    "mode": "shadow",
    "canaryPercent": 10,
}


def test_every_field_of_the_spec_is_among_the_others() -> None:
    assert {*OTHERS, "tests", "namespaceSelector", "priority", "unknownNamespace", "missingPolicy", "reclaim"} == set(
        SPEC
    )


def test_test_cases_have_no_meaning_of_their_own() -> None:
    spec = deepcopy(SPEC) | {"tests": [{"name": "a", "expect": {"outcome": "Bypassed"}}]}

    assert policy(json.dumps(spec)).revision == built_in_policy().revision


@pytest.mark.parametrize("field", OTHERS)
def test_another_meaning_has_another_revision(field: str) -> None:
    spec = deepcopy(SPEC) | {field: OTHERS[field]}

    assert policy(json.dumps(spec)).revision != built_in_policy().revision


def test_the_order_of_a_list_has_meaning() -> None:
    """The first accelerator is that of pods that request none."""
    spec: dict[str, Any] = deepcopy(SPEC)
    spec["accelerators"].reverse()

    assert policy(json.dumps(spec)).revision != built_in_policy().revision


def test_an_identity_is_name_and_revision() -> None:
    named = parse_policy(HEAD + "metadata: {name: production}\n", "p.yaml")

    assert named.identity == f"production@{named.revision}"
    assert len(named.revision) == 12
    assert set(named.revision) <= set("0123456789abcdef")


@pytest.mark.parametrize("order", [1, -1])
def test_errors_are_in_the_order_of_their_lines(order: int) -> None:
    fields = ["  mode: x", "  queueing: y", "  unknown: z"][::order]
    text = "\n".join(("apiVersion: placement.maip.mxsf.io/v1alpha1", "kind: PlacementPolicy", "spec:", *fields))
    with pytest.raises(InvalidInput) as caught:
        parse_policy(text, "p.yaml")

    found = [each.path.removeprefix("p.yaml:").partition(": spec.") for each in caught.value.errors]
    names = ["mode", "queueing", "unknown"][::order]
    assert [(line, name) for line, _, name in found] == [*zip("456", names, strict=True)]
