"""The webhooks are called for what at least one of several policies is about."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.registration import Target, manifest
from certs.webhook_rules import NAMESPACES, WORKLOADS, WebhookRules
from tests.support.admission import policy_with
from tests.support.programs.command import Run
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"


def with_run(path: str, resource: str = "runs", **spec: Any) -> Policy:
    kind = {"group": "example.com", "kind": "Run", "resource": resource, "templates": [{"path": path}]}
    return policy_with(workloadKinds=[kind], **spec)


def rules_of(rules: WebhookRules, webhook: str) -> dict[str, Any]:
    return next(each for each in manifest(Target(), rules)["webhooks"] if each["name"] == webhook)


def expression(rules: WebhookRules, webhook: str, name: str) -> str:
    found: str = next(
        each["expression"] for each in rules_of(rules, webhook)["matchConditions"] if each["name"] == name
    )
    return found


def test_equal_policies_have_the_rules_of_one() -> None:
    policy = built_in_policy()
    one = WebhookRules(tuple(policy.kinds.values()), (policy.spec.key_domain,))
    assert WebhookRules.of([policy]) == WebhookRules.of([policy, built_in_policy()]) == one


def test_a_kind_of_one_policy_is_sent() -> None:
    rules = rules_of(WebhookRules.of([built_in_policy(), with_run("spec.template")]), WORKLOADS)["rules"]
    assert [each["resources"] for each in rules if each["apiGroups"] == ["example.com"]] == [["runs"]]


def test_a_change_of_any_template_of_a_kind_is_sent() -> None:
    rules = WebhookRules.of([with_run("spec.a"), with_run("spec.b"), with_run("spec.c", "jogs")])
    condition = expression(rules, WORKLOADS, "changed-runs.example.com")
    assert all(f"object.?spec.?{each} != oldObject.?spec.?{each}" in condition for each in "abc")
    (rule,) = (each for each in rules_of(rules, WORKLOADS)["rules"] if each["apiGroups"] == ["example.com"])
    assert rule["resources"] == ["runs", "jogs"]


def test_the_keys_of_each_domain_are_sent() -> None:
    rules = WebhookRules.of([policy_with(), policy_with(keyDomain="a.com"), policy_with(keyDomain="a.com")])
    ours = "key.startsWith('maip.mxsf.io/') || key.startsWith('a.com/')"
    assert f".exists(key, {ours})" in expression(rules, NAMESPACES, "has-defaults")
    assert f".exists(key, ({ours}) && " in expression(rules, WORKLOADS, "changed-deployments.apps")


@pytest.mark.parametrize(("selector", "code"), [("{}", 0), ("null", 2)])
def test_certs_manifest_reads_all_policies_of_a_file(certs: Run, tmp_path: Path, selector: str, code: int) -> None:
    path = tmp_path / "policies.yaml"
    team = f"metadata: {{name: a}}\nspec: {{keyDomain: a.com, namespaceSelector: {selector}}}\n"
    path.write_text(f"{HEAD}---\n{HEAD}{team}")

    outcome = certs("manifest", "--policy", path)

    assert outcome.code == code
    assert ("a.com/" in str(yaml.load(outcome.output, yaml.CSafeLoader))) == (code == 0)


def test_two_kinds_of_one_resource_are_both_sent() -> None:
    kinds = [
        {"group": "example.com", "kind": kind, "resource": "runs", "templates": [{"path": "spec.template"}]}
        for kind in ("Run", "Rerun")
    ]
    rules = WebhookRules.of([policy_with(workloadKinds=[kind]) for kind in kinds])
    assert [each.kind for each in rules.kinds if each.group == "example.com"] == ["Run", "Rerun"]


@pytest.mark.parametrize(
    ("path", "selected"),
    [
        ("spec.pod", ".?spec.?pod"),
        ("spec.pod-template", '.?spec[?"pod-template"]'),
        ("spec.in", '.?spec[?"in"]'),
    ],
)
def test_a_key_that_is_no_identifier_of_cel_is_selected_as_text(path: str, selected: str) -> None:
    condition = expression(WebhookRules.of([with_run(path)]), WORKLOADS, "changed-runs.example.com")
    assert f"object{selected} != oldObject{selected}" in condition
