"""doctor finds each fault that is planted on the real control plane, and none on a healthy installation."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from placement_doctor.registry import CHECKS
from tests.controlplane.polling import wait_for
from tests.docs.markdown import ROOT, blocks
from tests.doctor.installed import Installed, installation, replaced
from tests.doctor.planted import NOWHERE, PLANTED, in_each_webhook, service_without_endpoints
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import read
from tests.support.on_cluster.service_account import limited_to
from webhook.documents.documents import parse

__all__ = ["installation"]


# A pod on trial shows whether the API server acts on the planted fault yet, and 75 reviews of rights take their time.
SLOW = {"answer", "rights"}
# Found elsewhere in this file, or not to be planted here: the control plane has the newest release.
OTHERS = {"readable", "answer", "endpoint", "missed-pods", "release"}


def test_nothing_is_found_in_a_healthy_installation(installation: Installed) -> None:
    printed = installation.doctor()
    assert printed["findings"] == []
    assert printed["healthy"] is True
    assert printed["checks"] == [each.id for each in CHECKS]


def test_every_check_is_planted() -> None:
    assert {check_of(name) for name in PLANTED} | OTHERS == {each.id for each in CHECKS}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found_and_its_remedy_mends_it(installation: Installed, name: str) -> None:
    """Each remedy has the names of the objects. Where its commands are enough, nothing is found after them."""
    fault, check = PLANTED[name], check_of(name)
    skipped = [f"--skip={each}" for each in sorted(SLOW - fault.checks)]
    with fault.plant(installation), left_behind(installation, *fault.leaves):
        printed = installation.doctor(*skipped)["findings"]
        assert {each["check"] for each in printed if each["severity"] != "info"} == fault.checks
        remedies = list(dict.fromkeys(each["remedy"] for each in printed if each["check"] == check))
        assert all(text in " ".join(remedies) for text in fault.remedies), remedies
        if fault.mends:
            for remedy in remedies:
                installation.follow(remedy, fault.choices)
            asked = ("--check", check, "--check=readable")
            wait_for(lambda: not installation.faults(*asked), "the remedy to take effect")


@contextmanager
def left_behind(installation: Installed, *objects: str) -> Iterator[None]:
    """Delete afterwards what the commands of a remedy create."""
    try:
        yield
    finally:
        if objects:
            flags = ("--namespace=placement-webhook", "--ignore-not-found")
            installation.cluster.control_plane.kubectl("delete", *objects, *flags)


def check_of(name: str) -> str:
    return name.partition(":")[0]


def test_pods_that_are_created_while_the_webhook_is_away_are_found(installation: Installed) -> None:
    pod = make_pod("missed").annotate("maip.mxsf.io/workload-type", "training").obj()
    with in_each_webhook(installation, "clientConfig/url", NOWHERE, settled=True):
        installation.client.create(pod, namespace=installation.cluster.namespace)
        assert installation.faults("--skip=rights") == {"answer", "endpoint", "missed-pods"}
        with installation.webhooks(replaced("failurePolicy", "Fail"), settled=True):
            (answer,) = installation.doctor("--check", "answer")["findings"]
            assert "pods are refused (failurePolicy Fail): failed to call webhook" in answer["what"]
    assert installation.faults("--skip=rights") == {"missed-pods"}
    installation.client.delete("Pod", "missed", namespace=installation.cluster.namespace)


def test_a_missed_pod_of_a_replica_set_is_deleted_for_another_one(installation: Installed) -> None:
    pod = make_pod("missed").annotate("maip.mxsf.io/workload-type", "training").obj()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    with in_each_webhook(installation, "clientConfig/url", NOWHERE, settled=True):
        installation.client.create(pod, namespace=installation.cluster.namespace)
    (finding,) = installation.doctor("--check", "missed-pods")["findings"]
    command, _, others = finding["remedy"].partition("; ")
    assert command == f"`kubectl delete pod/missed -n {installation.cluster.namespace}`"
    assert others == "`placement-webhook missed` has all of them"
    installation.follow(command, {})
    assert installation.faults("--check", "missed-pods") == set()


def test_a_certificate_for_other_names_is_found_at_a_given_endpoint(installation: Installed) -> None:
    """As with a port-forward: the server is called there, by the name of the Service."""
    with service_without_endpoints(installation):
        printed = installation.doctor("--check", "certificate", "--endpoint", installation.address)
    (finding, *others) = printed["findings"]
    assert others == []
    assert "mismatch" in finding["what"]
    assert finding["what"].endswith("(valid for localhost, 127.0.0.1)")


def test_a_policy_that_is_not_the_one_in_force_is_found(installation: Installed, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: other}\n")
    (finding,) = installation.doctor("--policy", file, "--check", "policy")["findings"]
    assert "the given file is other@" in finding["what"]


def test_the_documented_rights_are_enough(installation: Installed, tmp_path: Path) -> None:
    (role,) = (each for each in blocks(ROOT / "docs" / "doctor.md", "yaml") if "ClusterRole" in each.text)
    (document,) = parse(role.text, role.place)
    (shipped,) = (each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole")
    with limited_to(installation.cluster, tmp_path, [*shipped["rules"], *document.content["rules"]]) as kubeconfig:
        assert installation.doctor(kubeconfig=kubeconfig)["findings"] == []


def test_what_may_not_be_read_is_a_finding_for_each_source(installation: Installed, tmp_path: Path) -> None:
    with limited_to(installation.cluster, tmp_path, []) as kubeconfig:
        findings = installation.doctor(kubeconfig=kubeconfig)["findings"]
    assert {each["check"] for each in findings} == {"readable"}
    assert {each["severity"] for each in findings} == {"warning"}
    nodes = next(each for each in findings if each["where"] == "Nodes")
    assert 'cannot list resource "nodes"' in nodes["what"]
    assert nodes["remedy"].startswith("grant the right: list nodes")
