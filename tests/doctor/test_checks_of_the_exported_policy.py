"""The check of the exported policy, with and without each fault."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from placement_doctor.check import Finding, Severity
from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from tests.doctor.healthy import POLICY, deployment, found, make_installation, objects, texts, with_args
from webhook.admission.exported_policy import exported_policy
from webhook.kube.release import Release
from webhook.policy.policy_set import PolicySet

Object = dict[str, Any]
KINDS = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
NAME = "placement-webhook.default"


def exported() -> list[Object]:
    """The objects as the API server stores them."""
    installation = make_installation()
    made = exported_policy(PolicySet(POLICY), 36, "placement-webhook", installation.configuration).objects
    return deepcopy(made)


def with_exported(*content: Object, mode: str = "on", **fields: Any) -> Cluster:
    servers = with_args(deployment(), f"--export-policy={mode}")
    return make_installation(objects={**objects(), Source.DEPLOYMENTS: (servers,), Source.EXPORTED: content}, **fields)


def faults(cluster: Cluster) -> list[Finding]:
    return found(cluster, "exported-policy")


@pytest.mark.parametrize("mode", ["on", "off"])
def test_objects_in_step_are_no_fault(mode: str) -> None:
    assert [each["kind"] for each in exported()] == list(KINDS)
    assert faults(with_exported(*exported(), mode=mode)) == []


def test_without_an_export_nothing_is_found_also_on_an_older_release() -> None:
    assert faults(with_exported(mode="off", release=Release(33, "v1.33.1"), unserved_kinds=frozenset(KINDS))) == []


def test_objects_of_others_are_no_fault() -> None:
    other = {"apiVersion": "v1", "kind": KINDS[0], "metadata": {"name": "other"}, "spec": {}}
    assert faults(with_exported(*exported(), other)) == []


@pytest.mark.parametrize(("missing", "effect"), [(0, "pods are not injected by it"), (1, "its policy has no effect")])
def test_a_missing_object_is_found(missing: int, effect: str) -> None:
    (finding,) = faults(with_exported(*(each for i, each in enumerate(exported()) if i != missing)))
    assert (finding.severity, finding.where) == (Severity.ERROR, f"{KINDS[missing]} {NAME}")
    assert finding.what == f"missing: {effect}"
    assert "`kubectl -n placement-webhook logs deployment/placement-webhook`" in finding.remedy


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        ({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}}, "spec"),
        ({"spec": {"failurePolicy": "Fail"}}, "spec"),
        ({"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}, "spec"),
    ],
)
def test_a_foreign_edit_is_found_and_its_writer_named(edit: Object, place: str) -> None:
    policy, *others = exported()
    policy["spec"] |= edit["spec"]
    policy["metadata"]["managedFields"] = [
        {"manager": "kubectl-edit", "time": "2026-01-02T00:00:00Z"},
        {"manager": "placement-webhook-export", "time": "2026-01-01T00:00:00Z"},
    ]
    (finding,) = faults(with_exported(policy, *others))
    assert (finding.severity, finding.where) == (Severity.ERROR, f"{KINDS[0]} {NAME}: {place}")
    assert finding.what.endswith("the last to write it was kubectl-edit")


def test_a_changed_label_is_found_in_the_metadata_and_an_added_one_is_no_fault() -> None:
    policy, *others = exported()
    policy["metadata"]["labels"]["team"] = policy["metadata"]["annotations"]["team"] = "a"
    assert faults(with_exported(policy, *others)) == []
    policy["metadata"]["labels"]["app.kubernetes.io/part-of"] = "a"
    (finding,) = faults(with_exported(policy, *others))
    assert (finding.severity, finding.where) == (Severity.ERROR, f"{KINDS[0]} {NAME}: metadata")


def test_an_older_policy_is_found() -> None:
    content = exported()
    for each in content:
        each["metadata"]["annotations"]["placement.maip.mxsf.io/policy"] = "default@old"
    (finding,) = faults(with_exported(*content))
    where = ", ".join(f"{kind} {NAME}" for kind in KINDS)
    assert finding.severity is Severity.WARNING
    assert texts([finding]) == [f"{where}: is of default@old, and {POLICY.identity} is in force"]


def test_what_is_left_over_is_found_and_deleted_by_the_remedy() -> None:
    left = deepcopy(exported()[0])
    left["metadata"]["name"] = "placement-webhook.gone"
    (finding,) = faults(with_exported(*exported(), left))
    assert finding.remedy == "`kubectl delete mutatingadmissionpolicies placement-webhook.gone`"


def test_objects_that_were_applied_by_hand_are_replaced() -> None:
    (finding,) = faults(with_exported(*exported()[1:], mode="off"))
    assert finding.remedy.startswith("`kubectl replace --force -f FILE`")


@pytest.mark.parametrize(
    ("release", "remedy"),
    [
        (Release(33, "v1.33.1"), "upgrade the cluster to 1.36, or leave out --export-policy"),
        (Release(34, "v1.34.0"), "--feature-gates=MutatingAdmissionPolicy=true"),
        (Release(35, "v1.35.0"), "--feature-gates=MutatingAdmissionPolicy=true"),
        (Release(36, "v1.36.2"), "remove these kinds from --runtime-config"),
    ],
)
def test_a_release_without_the_kinds_is_found(release: Release, remedy: str) -> None:
    (finding,) = faults(with_exported(release=release, unserved_kinds=frozenset(KINDS)))
    assert (finding.severity, finding.where) == (Severity.ERROR, "the API server")
    assert f"{release.version} does not serve {KINDS[0]}, {KINDS[1]}" in finding.what
    assert remedy in finding.remedy


def test_what_was_not_read_is_no_fault() -> None:
    known = with_exported()
    objects_read = dict(known.objects)
    del objects_read[Source.EXPORTED]
    assert faults(replace(known, objects=objects_read)) == []
