"""Missed pods: the policy concerns them, and they have no mark of an admission."""

from dataclasses import replace
from typing import Any

import pytest

from tests.admission.shipped_selection import selection_of
from tests.policy.several import with_unknown
from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.missed import NO_SCOPE, MissedPod, Owner, Scope, created_on_node, is_candidate, missed_pod
from webhook.admission.registered_selection import Selection
from webhook.documents.documents import field
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

TRAINER = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training").creation("2026-03-01T08:00:00Z")
SHIPPED = Selection.shipped("placement-webhook")
HASH = "7d4b9c8f5"


def found(
    pod: PodBuilder | dict[str, Any],
    scope: Scope = NO_SCOPE,
    policy: Policy | None = None,
    selection: Selection = SHIPPED,
) -> MissedPod | None:
    """Return the pod as missed, None if it is not."""
    content = pod.obj() if isinstance(pod, PodBuilder) else pod
    namespace = field(content, "metadata", "namespace") or "default"
    return missed_pod(content, PolicySet(policy or policy_with()), selection, {namespace: scope})


def bound(pod: PodBuilder, **metadata: Any) -> dict[str, Any]:
    """Return the pod as it is stored once it runs on a node."""
    content = pod.spec(nodeName="node-1").obj()
    content["metadata"] |= {"uid": "1", "resourceVersion": "7", **metadata}
    return content | {"status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}}


def test_a_pod_without_the_mark_is_missed_with_the_rules_that_would_change_it() -> None:
    missed = found(TRAINER)

    assert missed is not None
    assert (missed.namespace, missed.name, missed.created) == ("team-a", "trainer", "2026-03-01T08:00:00Z")
    assert (missed.workload_type, missed.denial) == ("training", "")
    assert {"NodeUsageAffinity", "SchedulerName"} <= set(missed.rules)


def test_a_pod_that_was_bound_meanwhile_is_missed() -> None:
    policy = policy_with()
    missed = found(TRAINER, policy=policy)
    assert missed is not None
    assert found(bound(TRAINER), policy=policy) == missed


def test_an_admitted_pod_is_not_missed() -> None:
    verdict = admit_pod(TRAINER.obj())

    assert verdict.outcome == "Patched"
    assert found(verdict.pod) is None


def test_a_pod_that_was_admitted_under_an_earlier_policy_is_not_missed() -> None:
    assert found(TRAINER.annotate(f"{DOMAIN}/placement-policy", "default@0123456789ab")) is None


def test_a_pod_of_an_unknown_namespace_is_not_missed_by_the_labels_that_it_may_have() -> None:
    policies = with_unknown("leave", {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})

    assert missed_pod(TRAINER.obj(), policies, SHIPPED, {}) is None
    assert missed_pod(TRAINER.obj(), policies, SHIPPED, {"team-a": NO_SCOPE}) is not None


def test_a_pod_that_the_policy_denies_is_missed_with_the_message() -> None:
    missed = found(TRAINER.annotate(TYPE, "trainnig"))

    assert missed is not None
    assert "trainnig" in missed.denial
    assert missed.rules == ()


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("web").gpu(1), id="without a workload type"),
        pytest.param(TRAINER.annotate(f"{DOMAIN}/inject", "disabled"), id="opted out"),
        pytest.param(TRAINER.owner("DaemonSet", "agents"), id="of a DaemonSet"),
        pytest.param(TRAINER.annotate("kubernetes.io/config.mirror", "1"), id="mirror pod"),
        pytest.param(TRAINER.deletion("2026-03-01T09:00:00Z"), id="being deleted"),
        pytest.param(TRAINER.obj() | {"status": {"phase": "Succeeded"}}, id="succeeded"),
        pytest.param(TRAINER.obj() | {"status": {"phase": "Failed"}}, id="failed"),
        pytest.param(
            bound(TRAINER, managedFields=[{"operation": "Update", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}]),
            id="created on a node",
        ),
        pytest.param(TRAINER.namespace("kube-system"), id="in kube-system"),
        pytest.param(TRAINER.namespace("placement-webhook"), id="in the namespace of the webhook"),
        pytest.param({"metadata": {"annotations": {TYPE: "training"}}, "spec": {"tolerations": 1}}, id="no pod"),
        pytest.param({"metadata": {"annotations": 1}, "spec": {}}, id="annotations of another type"),
        pytest.param({"metadata": None, "spec": None}, id="empty"),
    ],
)
def test_a_pod_that_admission_leaves_alone_is_not_missed(pod: PodBuilder | dict[str, Any]) -> None:
    assert found(pod) is None


def test_the_defaults_of_the_namespace_count() -> None:
    pod, defaults = make_pod("trainer").namespace("team-a").gpu(1), Scope({TYPE: "training"}, {})

    assert found(pod) is None
    missed = found(pod, defaults)
    assert missed is not None
    assert missed.workload_type == "training"


def test_the_policy_decides_what_is_missed() -> None:
    pod = make_pod("trainer").gpu(1).annotate("example.com/workload-type", "training")

    assert found(pod) is None
    assert found(pod, policy=policy_with(keyDomain="example.com")) is not None


@pytest.mark.parametrize(
    ("pod", "owner", "remedy"),
    [
        (TRAINER, "None", "delete and create again: pod/trainer -n team-a"),
        (
            TRAINER.owner("ReplicaSet", f"web-{HASH}").label("pod-template-hash", HASH),
            "Deployment/web",
            "kubectl rollout restart deployment/web -n team-a",
        ),
        (TRAINER.owner("ReplicaSet", "web"), "ReplicaSet/web", "kubectl delete pod/trainer -n team-a"),
        (TRAINER.owner("StatefulSet", "db"), "StatefulSet/db", "kubectl rollout restart statefulset/db -n team-a"),
        (TRAINER.owner("Job", "train"), "Job/train", "delete and create again: job/train -n team-a"),
        (
            TRAINER.owner("PyTorchJob", "train"),
            "PyTorchJob/train",
            "delete and create again: pytorchjob/train -n team-a",
        ),
    ],
)
def test_the_remedy_is_that_of_the_owner(pod: PodBuilder, owner: str, remedy: str) -> None:
    missed = found(pod)

    assert missed is not None
    assert (str(missed.owner), missed.remedy) == (owner, remedy)


def test_a_pod_of_a_namespace_that_is_not_selected_is_not_missed() -> None:
    opted_in = selection_of(namespaceSelector={"matchLabels": {"placement": "on"}})

    assert found(TRAINER, selection=opted_in) is None
    assert found(TRAINER, Scope({}, {"placement": "on"}), selection=opted_in) is not None


def test_a_pod_that_the_object_selector_excludes_is_not_missed() -> None:
    selection = selection_of(objectSelector={"matchLabels": {"placement": "on"}})

    assert found(TRAINER, selection=selection) is None
    assert found(TRAINER.label("placement", "on"), selection=selection) is not None


def test_a_pod_that_a_condition_excludes_is_not_missed() -> None:
    condition = {"name": "not-exempt", "expression": "!('exempt' in object.metadata.labels)"}
    selection = selection_of(matchConditions=[condition])

    assert found(TRAINER.label("exempt", "").label("a", "b"), selection=selection) is None
    assert found(TRAINER.label("a", "b"), selection=selection) is not None


def test_a_condition_that_cannot_be_evaluated_excludes_no_pod_and_is_named() -> None:
    condition = {"name": "not-of-bots", "expression": "!request.userInfo.groups.exists(group, group == 'bots')"}
    selection = selection_of(matchConditions=[condition])

    assert found(TRAINER, selection=selection) is not None
    assert selection.undecided(TRAINER.obj()) == ("not-of-bots",)


def test_the_products_of_the_pod_are_read() -> None:
    missed = found(TRAINER.annotate(PRODUCT, "NVIDIA-H20"))

    assert missed is not None
    assert "GpuProduct" in missed.rules


@pytest.mark.parametrize("spec", [{"mode": "shadow"}, {"canaryPercent": 0}])
def test_a_pod_for_which_the_policy_is_not_enforced_is_not_missed(spec: dict[str, Any]) -> None:
    assert found(TRAINER, policy=policy_with(**spec)) is None


def test_nobody_is_told_to_restart_pods_that_would_be_denied() -> None:
    missed = found(TRAINER.annotate(TYPE, "unknown").owner("StatefulSet", "web"))

    assert missed is not None
    assert missed.denial
    assert "rollout" not in missed.remedy


_NODE_IS_SET = [{"operation": "Update", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}]


@pytest.mark.parametrize("node", ["", "n"])
@pytest.mark.parametrize(
    ("entries", "is_set"),
    [
        (_NODE_IS_SET, True),
        ([1, {"fieldsV1": {}}, {"fieldsV1": {"f:spec": 1}}, *_NODE_IS_SET], True),
        ([{"fieldsV1": {"f:spec": {"f:nodeSelector": {}}}}], False),
        ([], False),
        ({}, False),
        (None, False),
    ],
)
def test_a_creator_chose_the_node_if_the_field_is_managed(entries: Any, node: str, *, is_set: bool) -> None:
    pod = {"metadata": {"managedFields": entries}, "spec": {"nodeName": node}}

    assert created_on_node(pod) is (is_set and bool(node))


@pytest.mark.parametrize(
    ("pod", "is_one"),
    [
        (TRAINER, True),
        (TRAINER.status(phase="Running"), True),
        (TRAINER.status(phase="Succeeded"), False),
        (TRAINER.status(phase="Failed"), False),
        (TRAINER.deletion("2026-03-01T09:00:00Z"), False),
        (TRAINER.annotate(f"{DOMAIN}/placement-policy", ""), False),
        (make_pod("web"), False),
    ],
)
@pytest.mark.parametrize("defaults", [{}, {TYPE: "training"}])
def test_a_candidate_has_a_type_and_no_mark_and_goes_on(
    pod: PodBuilder, defaults: dict[str, str], *, is_one: bool
) -> None:
    found = is_candidate(pod.obj(), policy_with(), Scope(defaults, {}))

    assert found is (is_one or (bool(defaults) and pod.obj()["metadata"]["name"] == "web"))


def test_a_missed_pod_without_a_namespace_is_in_default_with_its_labels_and_policy() -> None:
    pod = make_pod("trainer").gpu(1).annotate(TYPE, "training")
    selection = selection_of(namespaceSelector={"matchLabels": {"placement": "on"}})
    policies = PolicySet(policy_with())
    for name, labels, is_missed in (
        ("default", {"placement": "on"}, True),
        ("default", {}, False),
        ("x", {"placement": "on"}, False),
    ):
        missed = missed_pod(pod.obj(), policies, selection, {name: Scope({}, labels)})
        assert (missed is not None) is is_missed
        assert missed is None or (missed.namespace, missed.policy) == ("default", policies.default)


def test_names_in_a_remedy_are_quoted_for_a_shell() -> None:
    missed = found(TRAINER)
    assert missed is not None
    odd = replace(missed, name="a b", namespace="c;d", owner=None)
    kinds = {
        "ReplicationController": "kubectl delete 'pod/a b' -n 'c;d'",
        "Deployment": "kubectl rollout restart 'deployment/x y' -n 'c;d'",
    }

    assert odd.remedy == "delete and create again: 'pod/a b' -n 'c;d'"
    assert {kind: replace(odd, owner=Owner(kind, "x y")).remedy for kind in kinds} == kinds
