"""What is kept of a pod is enough to decide on it again, and holds no more."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given

from placement_planner.replay.decision import Decider, Decision
from tests.golden.case import CASES, cluster_of, load, policy_of
from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.random.random_pods import pods
from webhook.admission.cluster_view import ClusterView
from webhook.admission.missed import Scope
from webhook.admission.recorded_pod import RecordedPod
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

SECRET = "hunter2"


def decided(pod: dict[str, Any], scope: Scope | None, policy: Policy, view: ClusterView | None = None) -> Decision:
    decider = Decider(PolicySet(policy), lambda _: view)
    namespace = str(pod["metadata"].get("namespace") or "default")
    return decider.decide(RecordedPod(pod, scope), namespace, "")


def kept(pod: dict[str, Any], scope: Scope | None, policy: Policy) -> RecordedPod:
    domains = {policy.spec.key_domain, *policy.spec.former_key_domains}
    return RecordedPod.parse(RecordedPod.of(pod, scope, (), domains).serialised())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_decision_on_what_is_kept_of_a_golden_case_is_that_on_the_pod(path: Path) -> None:
    case = load(path)
    policy = policy_of(case)
    view, pod = cluster_of(case, policy), case["pod"]
    known = case.get("namespace")
    scope = None if known is None else Scope(known.get("annotations") or {}, known.get("labels") or {})
    recorded = kept(pod, scope, policy)

    assert decided(recorded.pod, recorded.scope, policy, view) == decided(pod, scope, policy, view)


@given(pod=pods())
def test_the_decision_on_what_is_kept_of_any_pod_is_that_on_the_pod(pod: dict[str, Any]) -> None:
    policy = policy_with()
    recorded = kept(pod, None, policy)

    assert decided(recorded.pod, None, policy) == decided(pod, None, policy)


def test_nothing_is_kept_that_can_hold_a_secret() -> None:
    pod = make_pod("trainer").annotate(TYPE, "training").obj()
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = SECRET
    pod["metadata"]["managedFields"] = [{"manager": SECRET}]
    container: dict[str, Any] = {
        "name": "main",
        "env": [{"name": "A", "value": SECRET}],
        "envFrom": [{"secretRef": {"name": SECRET}}],
    }
    container |= {
        "image": SECRET,
        "command": [SECRET],
        "args": [SECRET],
        "livenessProbe": {"exec": {"command": [SECRET]}},
    }
    container["lifecycle"] = {"postStart": {"exec": {"command": [SECRET]}}}
    pod["spec"] |= {
        "containers": [container],
        "initContainers": [container],
        "ephemeralContainers": [container],
        "imagePullSecrets": [{"name": SECRET}],
        "hostAliases": [{"ip": SECRET}],
        "volumes": [
            {"name": "a", "csi": {"driver": "x", "volumeAttributes": {"password": SECRET}}},
            {"name": "b", "flexVolume": {"driver": "x", "options": {"password": SECRET}}},
            {"name": "c", "secret": {"secretName": SECRET}},
        ],
    }
    scope = Scope({f"{DOMAIN}/queue": "a", "example.com/token": SECRET}, {})
    content = RecordedPod.of(pod, scope, (), {DOMAIN}).serialised()

    assert SECRET.encode() not in content
    assert orjson.loads(content)["pod"]["metadata"]["annotations"] == {
        TYPE: "training",
        "kubectl.kubernetes.io/last-applied-configuration": "",
    }
    assert orjson.loads(content)["namespace"]["annotations"] == {f"{DOMAIN}/queue": "a"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"pod":1,"namespace":null,"groups":[]}', b'{"pod":{}}'])
def test_something_else_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        RecordedPod.parse(content)
