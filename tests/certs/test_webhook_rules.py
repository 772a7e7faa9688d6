"""The webhooks of a configuration: those that an earlier version lacks, and the rules that a policy asks for."""

import base64
import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from certs import registration
from certs.cluster.register import Registration
from certs.registration import Target
from certs.webhook_rules import NAMESPACES, PODS, POLICIES, WORKLOADS, WebhookRules
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from tests.support.tls.certificates import NOW
from tests.support.tls.registering import register_in
from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/00-placement-webhook"
UNPROBED = Registration(Target(), skip_probe=True)
FOO_JOB = WorkloadKind("example.com", "FooJob", "foojobs", (PodTemplatePath("spec.template"),))
MINE = WebhookRules((*BUILT_IN_KINDS, FOO_JOB), ("example.com",))

Object = dict[str, Any]


def of_an_earlier_version() -> Object:
    """Return a configuration with the webhook for pods alone, and an endpoint and namespaces of the operator's."""
    configuration = registration.manifest(Target())
    pods = configuration["webhooks"][0]
    pods["clientConfig"]["service"]["port"] = 8443
    pods["namespaceSelector"] = {"matchLabels": {"gpu": "yes"}}
    configuration["metadata"]["resourceVersion"] = "7"
    return configuration | {"webhooks": [pods]}


def names(configuration: Object) -> list[str]:
    return [webhook["name"] for webhook in configuration["webhooks"]]


def steps(api: FakeConfigurationApi, folder: Path, wanted: Registration) -> str:
    """Return the step that writes the configuration."""
    made = register_in(api.kubeconfig(folder), wanted, NOW)
    (step,) = [each for each in made if each.startswith("Mutating")]
    return step


def test_the_webhooks_that_a_configuration_lacks_have_the_endpoint_and_namespaces_of_its_own() -> None:
    before = of_an_earlier_version()

    added = registration.missing_webhooks(before, registration.manifest(Target()))

    assert [webhook["name"] for webhook in added] == [WORKLOADS, NAMESPACES, POLICIES]
    for webhook in added:
        assert webhook["clientConfig"] == before["webhooks"][0]["clientConfig"]
        assert webhook["namespaceSelector"] == {"matchLabels": {"gpu": "yes"}}


@pytest.mark.parametrize(
    "configuration", [{"metadata": {"name": "web"}}, {"webhooks": [{"name": "mine.example.com", "clientConfig": {}}]}]
)
def test_a_configuration_of_another_tool_lacks_nothing(configuration: Object) -> None:
    assert registration.missing_webhooks(configuration, registration.manifest(Target())) == []


def test_register_adds_the_webhooks_to_a_configuration_of_an_earlier_version(tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects[CONFIGURATION] = of_an_earlier_version()

        first, second = steps(api, tmp_path, UNPROBED), steps(api, tmp_path, UNPROBED)

    place = "MutatingWebhookConfiguration 00-placement-webhook"
    assert first == f"{place}: patched, 1 CA in caBundle; added {WORKLOADS}, {NAMESPACES}, {POLICIES}"
    assert second == f"{place}: unchanged, 1 CA in caBundle"
    assert names(api.objects[CONFIGURATION]) == [PODS, WORKLOADS, NAMESPACES, POLICIES]
    bundles = {webhook["clientConfig"]["caBundle"] for webhook in api.objects[CONFIGURATION]["webhooks"]}
    assert len(bundles) == 1
    assert b"CERTIFICATE" in base64.b64decode(bundles.pop())


def test_register_can_keep_to_the_ca_bundle(tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects[CONFIGURATION] = of_an_earlier_version()

        step = steps(api, tmp_path, replace(UNPROBED, only_ca_bundle=True, webhook_rules=MINE))

    assert step.endswith(": patched, 1 CA in caBundle")
    assert names(api.objects[CONFIGURATION]) == [PODS]


def test_register_that_keeps_to_the_ca_bundle_changes_no_rules(tmp_path: Path) -> None:
    with fake_api() as api:
        steps(api, tmp_path, UNPROBED)
        step = steps(api, tmp_path, replace(UNPROBED, only_ca_bundle=True, webhook_rules=MINE))

    assert step.endswith(": unchanged, 1 CA in caBundle")


def test_register_follows_the_kinds_and_the_key_domain_of_a_policy(tmp_path: Path) -> None:
    with fake_api() as api:
        created = steps(api, tmp_path, UNPROBED)
        changed = steps(api, tmp_path, replace(UNPROBED, webhook_rules=MINE))
        kept = steps(api, tmp_path, UNPROBED)

    assert created.endswith(": created, 1 CA in caBundle")
    assert changed.endswith(": patched, 1 CA in caBundle; rules changed to those of the policy")
    assert kept.endswith(": unchanged, 1 CA in caBundle")
    found = api.objects[CONFIGURATION]["webhooks"]
    wanted = registration.manifest(Target(), MINE)["webhooks"]
    assert [(each["rules"], each["matchConditions"]) for each in found] == [
        (each["rules"], each["matchConditions"]) for each in wanted
    ]
    assert ["foojobs"] in [each["resources"] for each in found[1]["rules"]]
    assert "startsWith('example.com/')" in found[2]["matchConditions"][0]["expression"]


def test_rules_that_are_those_of_the_policy_are_not_patched() -> None:
    configuration = registration.manifest(Target(), MINE)

    assert registration.changed_rules(configuration, MINE) == []
    changed = jsonpatch.apply_patch(
        copy.deepcopy(registration.manifest(Target())),
        registration.changed_rules(registration.manifest(Target()), MINE),
    )
    assert changed == configuration


@pytest.mark.slow
def test_manifest_prints_what_register_creates(certs: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    kind = {"group": "example.com", "kind": "FooJob", "resource": "foojobs", "templates": [{"path": "spec.template"}]}
    spec = {"keyDomain": "example.com", "workloadKinds": [kind]}
    document = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "spec": spec}
    policy.write_text(yaml.safe_dump(document))

    plain, followed = certs("manifest"), certs("manifest", "--policy", policy, "--service", "other")

    assert yaml.load(plain.output, yaml.CSafeLoader) == registration.manifest(Target())
    assert yaml.load(followed.output, yaml.CSafeLoader) == registration.manifest(Target(service="other"), MINE)
