"""The rights that doctor asks for are those of the manifests, as far as the arguments of the pods need them."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from placement_doctor.check import Severity
from placement_doctor.cluster import Cluster, Right, Role
from placement_doctor.rights import access_review, needed_rights, rights_of
from placement_doctor.source import Source
from tests.doctor.healthy import (
    POLICY,
    controller,
    deployment,
    found,
    make_installation,
    objects,
    self_managed,
    with_args,
)
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object, read
from webhook.policy.policy_set import PolicySet

SERVER, CERTS = "placement-webhook/placement-webhook", "placement-webhook-certs/placement-webhook-certs"
ERROR, WARNING = Severity.ERROR, Severity.WARNING

Granted = set[tuple[str, str, str, str]]


def granted_by(role: Role) -> Granted:
    """Return group, resource, verb and name of each right in the file of the role."""
    rules = [rule for each in read(role.file) if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def asked(rights: Iterable[Right], role: Role) -> Granted:
    return {(each.group, each.resource, each.verb, each.name) for each in rights if each.role is role}


def of(server: Object, *others: Object) -> Cluster:
    return make_installation(objects={**objects(), Source.DEPLOYMENTS: (server, *others)})


ALL_PARTS = ("--policy-source=crd", "--export-policy=on")
GROUPS = {group for group, _, _, _ in granted_by(Role.SERVER)}


def test_the_rights_of_all_parts_are_those_of_the_manifests() -> None:
    rights = [*rights_of(of(with_args(deployment(), *ALL_PARTS), controller()), GROUPS)]
    assert {role: asked(rights, role) for role in Role} == {role: granted_by(role) for role in Role}
    assert {(each.role, each.account) for each in rights} == {
        (Role.SERVER, SERVER),
        (Role.POLICIES, SERVER),
        (Role.EXPORTED, SERVER),
        (Role.CERTS, CERTS),
    }
    assert {each.namespace for each in rights if each.resource == "secrets"} == {"placement-webhook"}


def test_a_part_that_is_not_used_needs_no_right() -> None:
    rights = [*rights_of(of(with_args(deployment(), "--no-events")), GROUPS)]
    assert {each.role for each in rights} == {Role.SERVER}
    assert not {"events"} & {each.resource for each in rights}
    assert [*rights_of(of(with_args(deployment(), without="--in-cluster")), GROUPS)] == []
    as_in_the_chart = with_args(controller(), without="--create-configuration")
    verbs = {each.verb for each in rights_of(of(deployment(), as_in_the_chart), GROUPS) if each.name.startswith("00-")}
    assert verbs == {"get", "watch", "patch"}


def test_the_names_of_the_objects_are_those_of_the_arguments() -> None:
    named = with_args(controller(), "--secret=tls", "--also-configuration=other", "--namespace=certs")
    rights = [each for each in rights_of(of(deployment(), named), GROUPS) if each.role is Role.CERTS]
    assert {each.name for each in rights} == {"tls", "00-placement-webhook", "other"}
    assert {each.namespace for each in rights if each.resource == "secrets"} == {"certs"}


@pytest.mark.parametrize(
    ("group", "name", "namespace"),
    [
        ("kueue.x-k8s.io", "kueue-manager-config", "kueue-system"),
        ("scheduling.volcano.sh", "volcano-scheduler-configmap", "volcano-system"),
    ],
)
def test_the_configuration_of_a_queue_is_read_where_its_group_is_served(group: str, name: str, namespace: str) -> None:
    rights = [each for each in needed_rights({group}) if each.resource == "configmaps"]

    assert [(each.verb, each.name, each.namespace) for each in rights] == [("get", name, namespace)]
    assert {each.group for each in needed_rights({group}) if each.group.endswith((".x-k8s.io", ".sh"))} == {group}


def test_a_review_is_about_the_service_account_and_all_of_its_groups() -> None:
    """Source: k8s.io/apiserver/pkg/authentication/serviceaccount, MakeGroupNames"""
    assert access_review(Right("apps", "replicasets", "get", True, account="placed/servers")) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "system:serviceaccount:placed:servers",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:placed", "system:authenticated"],
            "resourceAttributes": {"group": "apps", "resource": "replicasets", "verb": "get"},
        },
    }


def test_a_review_asks_for_the_subresource_of_one_object() -> None:
    right = Right("", "pods/log", "get", True, name="a", namespace="b")
    assert access_review(right)["spec"]["resourceAttributes"] == {
        "group": "",
        "resource": "pods",
        "verb": "get",
        "subresource": "log",
        "name": "a",
        "namespace": "b",
    }


@pytest.mark.parametrize(
    ("role", "severity", "what"),
    [
        (Role.SERVER, ERROR, "without a view, every verdict is Unknown"),
        (Role.POLICIES, ERROR, "placementpolicies.placement.maip.mxsf.io: without list and watch, a replica that"),
        (Role.POLICIES, WARNING, "may not patch placementpolicies/status.placement.maip.mxsf.io: their status is not"),
        (Role.CERTS, WARNING, "may not patch secrets placement-webhook-tls, mutatingwebhookconfigurations."),
    ],
)
def test_a_right_that_is_missing_names_the_file_that_grants_it(role: Role, severity: Severity, what: str) -> None:
    installation = of(with_args(deployment(), "--policy-source=crd"), controller())
    rights = (each._replace(is_held=each.role is not role) for each in rights_of(installation, ()))
    findings = found(replace(installation, rights=tuple(rights)), "rights")
    assert {each.remedy for each in findings} == {f"`kubectl apply -f deploy/{role.file}` grants it"}
    assert any(each.severity is severity and what in each.what for each in findings)


@pytest.mark.parametrize(("label", "stays"), [("team", True), ("kubernetes.io/metadata.name", False)])
def test_a_server_that_selects_by_labels_is_unready_without_namespaces(label: str, stays: bool) -> None:
    installation = replace(
        of(deployment()), file=PolicySet.of(POLICY, [policy_with(namespaceSelector={"matchLabels": {label: "a"}})])
    )
    rights = (each._replace(is_held=each.resource != "namespaces") for each in rights_of(installation, ()))
    findings = found(replace(installation, rights=tuple(rights)), "rights")
    assert [each.severity for each in findings] == [ERROR, ERROR]
    (listing,) = (each for each in findings if each.what.startswith("may not list namespaces"))
    assert ("a replica that starts stays unready" in listing.what) is stays


def test_a_release_is_upgraded_for_its_rights() -> None:
    server = deployment()
    server["metadata"]["annotations"] = {"meta.helm.sh/release-name": "placement"}
    installation = of(server)
    rights = tuple(each._replace(is_held=False) for each in rights_of(installation, ()))
    (remedy,) = {each.remedy for each in found(replace(installation, rights=rights), "rights")}
    assert remedy.startswith("`helm upgrade placement deploy/chart -n placement-webhook --reset-then-reuse-values` ")


def test_all_rights_held_are_no_fault() -> None:
    installation = self_managed()
    assert found(replace(installation, rights=tuple(rights_of(installation, GROUPS))), "rights") == []
