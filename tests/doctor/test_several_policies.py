"""Checks judge by the union of the policies in force, and a namespace by its own policy."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from placement_doctor.check import Severity
from placement_doctor.cluster import Cluster, Trial
from placement_doctor.source import Source
from tests.doctor.healthy import (
    NO_SIGN,
    PRODUCT,
    USAGE,
    WHITELIST,
    admitted,
    deployed,
    faults,
    found,
    make_installation,
    named,
    node_of,
    objects,
    quota,
    texts,
)
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object
from webhook.policy.policy import Policy
from webhook.policy.spec.document import PolicyDocument

INFO, WARNING = Severity.INFO, Severity.WARNING
STORAGE = {"nodeUsage": {"allow": ["storage"]}}
OWN_TYPES = {"workloadTypes": {"feature-store": STORAGE}}
BATCH_NODE = node_of("training", labels={USAGE: "storage"}, taints=[f"{USAGE}=storage:NoSchedule"])


def of_team_a(**spec: Any) -> Policy:
    """Return the policy of an object that selects the namespace team-a, unless `spec` has another selector."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    document = policy_with(**{"namespaceSelector": selector, **spec}).document
    content = {**document.model_dump(by_alias=True, exclude_unset=True), "metadata": {"name": "of-team-a"}}
    return Policy(PolicyDocument.model_validate(content))


def beside(*accepted: Policy, read: Mapping[Source, tuple[Object, ...]] | None = None, **fields: Any) -> Cluster:
    """Return a healthy installation with these policies of objects beside the default one."""
    return make_installation(accepted=accepted, objects={**objects(), **(read or {})}, **fields)


def with_batch_node(*accepted: Policy) -> Cluster:
    return beside(*accepted, read={Source.NODES: (*objects()[Source.NODES], BATCH_NODE)})


def test_equal_policies_have_no_fault() -> None:
    assert faults(beside(of_team_a())) == []


@pytest.mark.parametrize(("pool", "is_reached"), [("own", True), ("training", False)])
def test_a_product_is_reached_by_the_types_of_a_policy_with_its_accelerator(pool: str, is_reached: bool) -> None:
    """The default policy has types in the pool training, but does not know the accelerator."""
    own = {"name": "own", "resources": ["example.com/card"], "card": "example.com/card"}
    accelerators = [{**own, "labels": {"product": ["example.com/card.name"]}}]
    policy = of_team_a(accelerators=accelerators, workloadTypes={"own": {"nodeUsage": {"allow": ["own"]}}})
    node = node_of("training", labels={PRODUCT: None, USAGE: pool, "example.com/card.name": "X1"}, taints=[])
    node["metadata"]["name"] = "own-1"

    findings = found(beside(policy, read={Source.NODES: (*objects()[Source.NODES], node)}), "node-products")

    assert ["X1: no workload type reaches this product" in each.what for each in findings] == [True] * (not is_reached)


def test_a_selector_by_labels_selects_no_namespace_that_was_not_read() -> None:
    """As in the server, whose view does not have it."""
    of_others = of_team_a(namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})
    installation = beside(of_others)
    assert installation.policy_of("team-a") is of_others
    assert installation.policy_of("new") is installation.policy


def test_a_pool_that_only_one_policy_allows_is_used() -> None:
    (note,) = found(with_batch_node(), "node-usage")
    assert (note.severity, note.what) == (INFO, "storage: no workload type of the policy allows this pool")
    assert found(with_batch_node(of_team_a(**OWN_TYPES)), "node-usage") == []


def test_a_product_that_only_one_policy_reaches_is_reached() -> None:
    lost = node_of("training", labels={USAGE: "storage", PRODUCT: "NVIDIA-L4"}, taints=[])
    read = {Source.NODES: (*objects()[Source.NODES], lost)}
    assert "NVIDIA-L4: no workload type reaches" in " ".join(texts(found(beside(read=read), "node-products")))
    assert found(beside(of_team_a(**OWN_TYPES), read=read), "node-products") == []


def test_the_keys_of_each_domain_are_read() -> None:
    """A node of another domain has its own label and taint."""
    other = of_team_a(keyDomain="team-a.example.com")
    key = "team-a.example.com/node.usage"
    untainted = node_of("training", labels={key: "training"})
    findings = found(beside(other, read={Source.NODES: (untainted,)}), "node-usage")
    assert [each.what for each in findings] == [
        f"label {key}=training without the taint: pods without a workload type run there, too"
    ]
    mistyped = node_of("training", labels={"team-a.example.com/nodeusage": "training"})
    (finding,) = found(beside(other, read={Source.NODES: (mistyped,)}), "node-spelling")
    assert finding.what.endswith(f"did you mean {key}?")


def test_a_pool_of_an_object_that_no_node_has_is_found() -> None:
    findings = found(beside(of_team_a(**OWN_TYPES)), "pools")
    assert [(each.severity, each.where) for each in findings] == [
        (WARNING, "PlacementPolicy of-team-a: spec.workloadTypes.feature-store.nodeUsage.allow")
    ]


def test_an_empty_pool_of_two_policies_is_one_note() -> None:
    without = {Source.NODES: (objects()[Source.NODES][0], objects()[Source.NODES][1])}
    notes = found(beside(of_team_a(), read=without), "pools")
    assert [(each.severity, each.what) for each in notes] == [(INFO, f"no node has {USAGE}=hybrid")]


def test_a_type_is_judged_in_the_namespaces_of_its_policy() -> None:
    closed = of_team_a(workloadTypes={"training": {**STORAGE, "allowedNamespaces": ["default"]}})
    (finding,) = found(with_batch_node(closed), "workload-types")
    assert finding.where == "PlacementPolicy of-team-a: spec.workloadTypes.training.allowedNamespaces"
    nowhere = of_team_a(workloadTypes={"training": {**STORAGE, "allowedNamespaces": ["team-a"]}})
    assert found(with_batch_node(nowhere), "workload-types") == []


def test_a_policy_of_no_namespace_has_no_fault_of_its_types() -> None:
    unread = {Source.NAMESPACES: (named("default"),), Source.NODES: objects()[Source.NODES]}
    closed = of_team_a(workloadTypes={"training": {**STORAGE, "allowedNamespaces": ["default"]}})
    assert found(beside(closed, read=unread), "workload-types") == []


def test_a_scheduler_of_an_object_is_found_once_and_by_its_place() -> None:
    policy = of_team_a(workloadTypes={"training": {**STORAGE, "schedulerName": "team-scheduler"}})
    findings = found(beside(policy), "schedulers")
    assert [each.where for each in findings] == ["PlacementPolicy of-team-a: spec.workloadTypes.training.schedulerName"]
    read = {Source.DEPLOYMENTS: (*objects()[Source.DEPLOYMENTS], deployed("team-scheduler"))}
    assert found(beside(policy, read=read), "schedulers") == []
    (of_both,) = found(beside(of_team_a(), evidence=NO_SIGN), "schedulers")
    assert of_both.where == "policy: spec.workloadTypes.training.schedulerName"


@pytest.mark.parametrize(
    ("check", "spec", "path"),
    [
        ("queues", {"namespaceLimits": [{"namespaces": ["*"], "queues": ["gone"]}]}, "namespaceLimits[0].queues"),
        ("backends", {"queueing": "kueue"}, "queueing"),
        (
            "priority-classes",
            {"workloadTypes": {"training": {**STORAGE, "priorityClassName": "gone"}}},
            "workloadTypes.training.priorityClassName",
        ),
        ("policy", {"mode": "shadow"}, "mode"),
    ],
)
def test_what_an_object_names_is_checked(check: str, spec: dict[str, Any], path: str) -> None:
    assert [each.where for each in found(beside(of_team_a(**spec)), check)] == [
        f"PlacementPolicy of-team-a: spec.{path}"
    ]


def test_a_quota_is_judged_by_the_policy_of_its_namespace() -> None:
    read = {Source.QUOTAS: (quota({"pods": "0"}, "CrossNamespacePodAffinity"),)}
    same = {"binPacking": {"namespaces": "same"}}
    assert len(found(beside(read=read), "cross-namespace-quotas")) == 1
    assert found(beside(of_team_a(**same), read=read), "cross-namespace-quotas") == []
    assert len(found(beside(of_team_a(), read=read, policy=policy_with(**same)), "cross-namespace-quotas")) == 1


def test_a_whitelist_is_judged_by_the_policy_of_its_namespace() -> None:
    key = "team-a.example.com/node.usage"
    allowed = [{"key": key, "operator": "Exists"}, {"key": PRODUCT, "operator": "Exists"}]
    text = orjson.dumps(allowed).decode()
    read = {Source.NAMESPACES: (named("team-a", annotations={WHITELIST: text}),)}
    assert len(found(beside(read=read), "tolerations-whitelist")) == 1
    assert found(beside(of_team_a(keyDomain="team-a.example.com"), read=read), "tolerations-whitelist") == []


def test_a_mark_of_another_domain_is_a_mark() -> None:
    other = of_team_a(keyDomain="team-a.example.com")
    marked = admitted(other).pod
    trial = Trial("default", "training", 0.05, marked)
    assert found(beside(other, trial=trial), "answer") == []
    assert [each.severity for each in found(beside(trial=trial), "answer")] == [Severity.ERROR]


def test_an_alias_of_a_pod_is_that_of_the_policy_for_it() -> None:
    """The default policy has the same alias for another label."""
    named = {("of-team-a", "row"): "team-a/p"}
    own, other = (of_team_a(topologyAliases={"row": "example.com/row"}), policy_with(topologyAliases={"row": "other"}))

    findings = found(beside(own, policy=other, trial=None, named_topologies=named), "topology-labels")

    assert [each.what for each in findings] == ["no node has the label example.com/row, which Pod team-a/p names"]
