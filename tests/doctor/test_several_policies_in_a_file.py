"""A policy file with several documents: the policy of the dry-run pod's namespace is the one that counts."""

from typing import Any

import pytest

from placement_doctor.cluster import Cluster, Trial
from tests.doctor.healthy import admitted, found, make_installation, texts
from tests.support.admission import policy_with
from webhook.cli.inputs.installed_policy import StoredPolicy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import PolicyDocument

DEFAULT = policy_with()
SELECTED = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}


def named(name: str, **spec: Any) -> Policy:
    document = policy_with(namespaceSelector=SELECTED, **spec).document.model_dump(by_alias=True, exclude_unset=True)
    return Policy(PolicyDocument.model_validate({**document, "metadata": {"name": name}}))


OF_TEAM = named("team-a", productAffinity=False)


def marked(namespace: str, identity: str) -> Trial:
    annotations = {DEFAULT.policy_annotation: identity}
    return admitted()._replace(namespace=namespace, pod={"metadata": {"annotations": annotations}})


def installed(*others: Policy, **fields: Any) -> Cluster:
    stored = StoredPolicy("placement-policy", PolicySet.of(DEFAULT, others))
    return make_installation(stored=stored, policy=DEFAULT, others=others, **fields)


@pytest.mark.parametrize(
    ("namespace", "mark", "meant"),
    [
        ("default", DEFAULT.identity, ""),
        ("team-a", OF_TEAM.identity, ""),
        ("team-a", DEFAULT.identity, OF_TEAM.identity),
        ("default", OF_TEAM.identity, DEFAULT.identity),
    ],
)
def test_the_mark_is_that_of_the_policy_of_the_namespace(namespace: str, mark: str, meant: str) -> None:
    findings = texts(found(installed(OF_TEAM, trial=marked(namespace, mark)), "policy"))
    assert bool(findings) == bool(meant)
    assert all(f"holds {meant}, but a replica that answered has {mark}" in each for each in findings)


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        (PolicySet.of(DEFAULT, [OF_TEAM]), False),
        (PolicySet(DEFAULT), True),
        (PolicySet.of(DEFAULT, [named("team-a")]), True),
    ],
)
def test_the_given_policies_are_compared_with_all_of_the_config_map(given: PolicySet, differs: bool) -> None:
    trial = marked("default", DEFAULT.identity)
    findings = texts(found(installed(OF_TEAM, given=given, trial=trial), "policy"))
    assert bool(findings) == differs
    assert all(f"the cluster has {DEFAULT.identity}, {OF_TEAM.identity}, and the given" in each for each in findings)


def test_without_a_config_map_the_given_policy_of_the_namespace_is_compared() -> None:
    given = PolicySet.of(DEFAULT, [OF_TEAM])
    for mark, differs in ((OF_TEAM.identity, False), (DEFAULT.identity, True)):
        installation = make_installation(stored=None, given=given, trial=marked("team-a", mark))
        assert bool(found(installation, "policy")) == differs


def test_an_object_replaces_the_policy_of_its_name() -> None:
    newer = named("team-a", tolerateAnyProduct=False)
    assert [*installed(OF_TEAM, accepted=(newer,)).policies] == [DEFAULT, newer]


def test_a_policy_of_the_file_is_named_in_findings() -> None:
    shadow = named("team-a", mode="shadow")
    assert texts(found(installed(shadow), "policy")) == [
        "policy team-a: spec.mode: shadow: no pod is changed or denied"
    ]


def test_rules_are_those_that_all_policies_need() -> None:
    kinds = [{"group": "example.com", "kind": "Run", "resource": "runs", "templates": [{"path": "spec.run"}]}]
    (conditions, rules) = texts(found(installed(named("team-a", workloadKinds=kinds)), "match-conditions"))
    assert "missing changed-runs.example.com" in conditions
    assert "CREATE/example.com/runs" in rules
