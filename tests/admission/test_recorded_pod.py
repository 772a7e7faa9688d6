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
from webhook.admission.recorded_pod import RecordedPod, kept_domains, read_part
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


@pytest.mark.parametrize(
    ("key", "is_kept"),
    [
        (f"{DOMAIN}/anything", True),
        ("former.example.com/queue", True),
        ("other.example.com/queue", False),
        (f"{DOMAIN}.example.com/queue", False),
        ("scheduling.volcano.sh/queue-name", True),
        ("scheduling.k8s.io/group-name", True),
        ("volcano.sh/preemptable", True),
        ("pod-group-name", True),
        ("gpu-fraction", True),
        ("gpu-memory", True),
        ("gpu-fraction-num-devices", True),
        ("kueue.x-k8s.io/pod-group-total-count", True),
        ("kueue.x-k8s.io/podset-required-topology", True),
        ("volcano.sh/network-topology-mode", True),
        ("kai.scheduler/topology", True),
        ("volcano.sh/other", False),
    ],
)
def test_values_of_annotations_are_kept_that_policies_or_schedulers_read(key: str, *, is_kept: bool) -> None:
    policy = policy_with(formerKeyDomains=["former.example.com"])
    recorded = RecordedPod.of(make_pod("p").annotate(key, "v").obj(), None, ("g",), kept_domains(policy.spec))

    assert recorded.pod["metadata"]["annotations"] == {key: "v" if is_kept else ""}
    assert recorded.groups == ("g",)


def test_the_domain_of_the_built_in_policy_is_kept_under_any_policy() -> None:
    assert kept_domains(policy_with(keyDomain="a.io", formerKeyDomains=["b.io"]).spec) == {DOMAIN, "a.io", "b.io"}


def test_what_decides_on_the_place_is_kept() -> None:
    owner = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "1", "controller": True, "blockOwnerDeletion": True}
    claim = {"name": "d", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
    pod = make_pod("p").gpu(1).node_selector("a", "b").init_container("i", cpu=1).label("l", "m").obj()
    pod["metadata"]["ownerReferences"] = [owner, "odd"]
    pod["spec"]["volumes"] = [claim, {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}}]
    read = read_part(pod, ())

    assert read["metadata"]["ownerReferences"] == [
        {key: value for key, value in owner.items() if key != "blockOwnerDeletion"},
        "odd",
    ]
    assert read["metadata"]["labels"] == {"l": "m"}
    assert read["spec"]["volumes"] == [claim]
    assert read["spec"]["nodeSelector"] == {"a": "b"}
    for part in ("containers", "initContainers"):
        assert [each["resources"] for each in read["spec"][part]] == [each["resources"] for each in pod["spec"][part]]
        assert not any("image" in each for each in read["spec"][part])


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_a_pod_of_another_form_is_not_recorded(part: str) -> None:
    with pytest.raises(ValueError, match="holds no pod"):
        RecordedPod.of(make_pod("p").obj() | {part: 1}, None, (), ())


@pytest.mark.parametrize("scope", [None, Scope({}, {}), Scope({f"{DOMAIN}/a": "b"}, {"c": "d"})])
def test_a_recorded_pod_is_parsed_as_it_was_and_equal_pods_have_equal_content(scope: Scope | None) -> None:
    pod = make_pod("p").label("a", "b").label("c", "d").obj()
    swapped = {**pod, "metadata": dict(reversed(pod["metadata"].items()))}
    first, second = (RecordedPod.of(each, scope, ("g", "h"), {DOMAIN}) for each in (pod, swapped))

    assert RecordedPod.parse(first.serialised()) == first
    assert first.serialised() == second.serialised()
