"""What the API server makes of a pod equals what the exported rules make of it, and the webhook adds the rest."""

import os
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any

import orjson
import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.differential.random_objects.exported import PROBE, ExportedPolicies, Trial
from tests.differential.random_objects.exported_cases import (
    NAMESPACES,
    PRIORITY_CLASSES,
    Choices,
    random_pod,
    random_policies,
)
from tests.golden.case import CASES, load
from tests.support.admission import policy_with
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import API_VERSION, KIND

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
POLICIES = int(os.environ.get("DIFFERENTIAL_EXPORTED_POLICIES", "4"))
PODS = int(os.environ.get("DIFFERENTIAL_EXPORTED_PODS", "60"))
IS_LONG = "DIFFERENTIAL_EXPORTED_POLICIES" in os.environ
# The API server compiles each policy when it is created, and again before it evaluates it.
POLICIES_AT_ONCE = 25
CLASSES = {**PRIORITY_CLASSES, "serving": 1, "training-high": 2}
pytestmark = [pytest.mark.timeout(3 * 3600)] if IS_LONG else []


@pytest.fixture
def exported(cluster: Cluster) -> Iterator[ExportedPolicies]:
    """Exported policies on the API server, which are deleted after the test, and the classes that policies name."""
    for name, value in CLASSES.items():
        metadata = {"name": name}
        cluster.client.create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        )
    policies = ExportedPolicies(cluster.client)
    try:
        yield policies
    finally:
        policies.remove()
        for name in CLASSES:
            cluster.client.delete("PriorityClass", name, api_version="scheduling.k8s.io/v1")


def _in_namespace(cluster: Cluster, namespace: Object, probe: str) -> None:
    """Let the namespace have this metadata, and the annotation PROBE, by which policies show that they see it."""
    found = {each["metadata"]["name"]: each for each in cluster.client.list("Namespace")}
    annotations = {**namespace.get("annotations", {}), PROBE: probe}
    name, labels = namespace["name"], dict(namespace.get("labels", {}))
    if name not in found:
        cluster.make_namespace(name, annotations=annotations, labels=labels)
        return
    metadata = {"name": name, "annotations": annotations, "labels": {"kubernetes.io/metadata.name": name, **labels}}
    cluster.client.replace({**found[name], "metadata": metadata})


def _tried(exported: ExportedPolicies, pod: Object, key: str, policies: PolicySet, namespace: Object) -> Trial | None:
    """Return the trial of a pod, None if the API server does not accept it as the user wrote it."""
    try:
        prepared = exported.prepared(pod, namespace["name"])
    except ApiError:
        return None
    policy = policies.of_namespace(namespace["name"], namespace.get("labels", {}))
    trial = exported.trial(prepared, key, policy, namespace)
    if trial.stored is not None and not trial.difference:
        assert exported.again(trial.stored, namespace["name"]) == trial.stored
        if trial.second is not None and trial.second.outcome == "Patched":
            # The API server evaluates the policy again after the webhook.
            final = trial.injected_by_both
            again = exported.again(final, namespace["name"])
            assert again["metadata"] == final["metadata"]
    return trial


def _outcome(trial: Trial) -> str:
    """Return how much of the webhook's injection the exported policy makes."""
    if trial.expected == trial.original:
        return "left"
    return "partly" if trial.second is not None and trial.second.outcome == "Patched" else "whole"


def _policies_of(case: dict[str, Any]) -> PolicySet:
    if "policies" not in case:
        return PolicySet(policy_with(**case.get("policy", {})))
    documents = [{"apiVersion": API_VERSION, "kind": KIND, **each} for each in case["policies"]]
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    return policy_set(parse_policies(text, "policies"))


def _pod_of(case: dict[str, Any]) -> Object:
    """Return the pod of a golden case with the fields without which the API server accepts none."""
    pod: Object = deepcopy(case["pod"])
    metadata, spec = pod["metadata"], pod["spec"]
    metadata.pop("namespace", None)
    metadata.setdefault("name", "worker-0")
    spec["containers"] = spec.get("containers") or [{"name": "main"}]
    for each in (*spec["containers"], *(spec.get("initContainers") or ())):
        each.setdefault("image", "nginx")
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        owner |= {"apiVersion": owner.get("apiVersion", "apps/v1"), "uid": owner.get("uid", str(index))}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _golden_cases() -> list[tuple[str, dict[str, Any]]]:
    """Return the golden cases; in the short form, those of the built-in policy in a namespace without defaults."""
    cases = [(path.stem.replace("_", "-"), load(path)) for path in CASES]
    is_short = ("policy", "policies", "namespace")
    return [(name, case) for name, case in cases if IS_LONG or not any(key in case for key in is_short)]


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), POLICIES_AT_ONCE):
        yield names[start : start + POLICIES_AT_ONCE]


def test_golden_cases_are_stored_as_the_exported_rules_make_them(cluster: Cluster, exported: ExportedPolicies) -> None:
    by_policy: dict[str, list[tuple[str, dict[str, Any], PolicySet]]] = {}
    for name, case in _golden_cases():
        policies = _policies_of(case)
        key = name if policies.others else policies.default.revision
        by_policy.setdefault(key, []).append((name, case, policies))
    differences: dict[str, str] = {}
    outcomes: list[str] = []
    for keys in _batches(list(by_policy)):
        exported.install({key: by_policy[key][0][2] for key in keys})
        cases = [(key, *case) for key in keys for case in by_policy[key]]
        last: Object = {}
        for key, name, case, policies in sorted(cases, key=lambda each: str(each[2].get("namespace"))):
            namespace: Object = {"name": "default", **case.get("namespace", {})}
            if namespace != last:
                _in_namespace(cluster, namespace, name)
                exported.wait_for_namespace(namespace["name"], name)
                last = namespace
            if trial := _tried(exported, _pod_of(case), key, policies, namespace):
                outcomes.append(_outcome(trial))
                differences |= {name: trial.difference} if trial.difference else {}
        exported.remove()

    assert differences == {}
    assert outcomes.count("whole") + outcomes.count("partly") >= (80 if IS_LONG else 20)


def test_random_pods_are_stored_as_the_exported_rules_make_them(cluster: Cluster, exported: ExportedPolicies) -> None:
    for each in NAMESPACES:
        _in_namespace(cluster, each, "random")
    policies = dict(enumerate(islice(random_policies(FIRST_SEED), POLICIES)))
    differences: dict[str, str] = {}
    outcomes: list[str] = []
    for keys in _batches(list(map(str, policies))):
        exported.install({key: PolicySet(policies[int(key)]) for key in keys})
        for each in NAMESPACES:
            exported.wait_for_namespace(each["name"], "random")
        for key in keys:
            for seed in range(FIRST_SEED + int(key), FIRST_SEED + PODS, POLICIES):
                dice = Choices(seed)
                namespace, pod = dice.one(NAMESPACES), random_pod(dice)
                if trial := _tried(exported, pod, key, PolicySet(policies[int(key)]), namespace):
                    outcomes.append(_outcome(trial))
                    differences |= {f"policy {key}, pod {seed}": trial.difference} if trial.difference else {}
        exported.remove()

    assert differences == {}
    assert {"whole", "left"} <= {*outcomes}
