"""The record of a decision in shadow mode."""

from typing import Any

import pytest

from tests.serving.shadowed import answers
from tests.support.admission import PRODUCT, TYPE
from tests.support.objects.builders import make_pod
from webhook.audit.record import Owner
from webhook.serving.decisions.audit_record import owner_of

TRAINING = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").gpu(1).obj()
SCHEDULED = TRAINING | {"spec": TRAINING["spec"] | {"schedulerName": "default-scheduler"}}
MISSPELT = make_pod("trainer").annotate(TYPE, "trainig").obj()
UNTYPED = make_pod("web").annotate(PRODUCT, "NVIDIA-H20").obj()
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replicas": 1, "template": {"metadata": TRAINING["metadata"], "spec": TRAINING["spec"]}},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "annotations": {TYPE: "no"}}}
SHADOW = {"mode": "shadow"}


def kind(group: str, name: str, resource: str) -> dict[str, Any]:
    return {
        "kind": {"group": group, "version": "v1", "kind": name},
        "resource": {"group": group, "version": "v1", "resource": resource},
    }


CONTENTS = [
    pytest.param(TRAINING, {}, id="a pod that is patched"),
    pytest.param(SCHEDULED, {}, id="a pod with a value that is replaced"),
    pytest.param(MISSPELT, {}, id="a pod that is denied"),
    pytest.param(UNTYPED, {}, id="a pod that is warned of"),
    pytest.param(DEPLOYMENT, kind("apps", "Deployment", "deployments"), id="an object whose templates are patched"),
    pytest.param(NAMESPACE, kind("", "Namespace", "namespaces"), id="a Namespace that is denied"),
]
OBJECTS = {"workloadObjects": {"mutateTemplates": True, "report": "always"}}


@pytest.mark.parametrize(("content", "request_"), CONTENTS)
@pytest.mark.parametrize("spec", [SHADOW, {"canaryPercent": 0}])
def test_the_record_has_the_answer_that_was_not_given(
    content: dict[str, Any], request_: dict[str, Any], spec: dict[str, Any]
) -> None:
    response, given_record, _ = answers(content, OBJECTS, **request_)
    shadowed, record, world = answers(content, {**OBJECTS, **spec}, **request_)

    assert any(key in response for key in ("patch", "warnings", "status"))
    assert shadowed.keys() == {"uid", "allowed", "auditAnnotations"}
    assert shadowed["allowed"]
    assert shadowed["auditAnnotations"]["outcome"] == record.outcome == "Bypassed"
    assert (record.patch, record.warnings, record.rules, record.placement) == ((), (), (), None)
    assert record.workload_type == given_record.workload_type
    assert record.shadow is not None
    assert record.shadow.outcome == given_record.outcome == shadowed["auditAnnotations"]["shadow"]
    assert (record.shadow.rules, record.shadow.warnings) == (given_record.rules, given_record.warnings)
    assert [each["path"] for each in record.shadow.patch] == [each["path"] for each in given_record.patch]
    assert record.before == given_record.before
    assert bool(record.before) == (content is SCHEDULED)
    assert record.shadow.placement == given_record.placement
    assert record.shadow.message == given_record.error
    assert world.count("shadowed_admissions_total", outcome=given_record.outcome) == 1
    assert world.count("rule_edits_total", rule="NodeUsageAffinity") == 0


def test_a_pod_that_the_policy_does_not_concern_is_on_record_as_ever() -> None:
    pod = make_pod("web").obj()
    _, before, _ = answers(pod, {})
    _, record, world = answers(pod, SHADOW)
    assert record.shadow is None
    assert record.error == before.error == "no workload type"
    assert world.count("shadowed_admissions_total", outcome="Bypassed") == 0


def owner(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-of-{name}", **fields}


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        pytest.param([owner("a", controller=True)], Owner("ReplicaSet", "a"), id="the only one"),
        pytest.param(
            [owner("a"), owner("b", controller=False), owner("c", controller=True), owner("d")],
            Owner("ReplicaSet", "c"),
            id="the controller among others",
        ),
        pytest.param([owner("a"), owner("b", controller=False)], None, id="no controller"),
        pytest.param([None, "a", {"controller": True}], Owner("", ""), id="no owners"),
        pytest.param({"controller": True}, None, id="no list"),
    ],
)
def test_the_owner_of_a_pod_is_its_controller(owners: Any, found: Owner | None) -> None:
    assert owner_of({"metadata": {"ownerReferences": owners}}) == found
