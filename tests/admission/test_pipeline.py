"""The steps of a request: which policy is for it, where labels of namespaces are not known, too."""

import pytest

from tests.policy.several import named, with_unknown
from tests.support.admission import TYPE, make_request
from tests.support.objects.builders import make_pod
from webhook.admission.cluster_view import ClusterView
from webhook.admission.pipeline import policy_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.objects.admission import admit_request
from webhook.policy.policy_set import PolicySet

SELECTOR = {"matchLabels": {"team": "a"}}


def test_a_namespace_is_judged_by_its_own_labels() -> None:
    policies = PolicySet.of(named("default"), [named("a", SELECTOR)])
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"team": "a"}}}
    request = make_request(content, namespace="new", name="new", kind="Namespace", resource="namespaces")
    before = snapshot_from_documents([Document("f", content | {"metadata": {"name": "new", "labels": {"team": "b"}}})])
    for cluster in (None, ClusterView(before, None)):
        assert policy_for(request, policies, cluster).name == "a"


def test_a_namespace_is_selected_by_its_own_name() -> None:
    policies = PolicySet.of(named("default"), [named("a", {"matchLabels": {"kubernetes.io/metadata.name": "new"}})])
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    request = make_request(content, namespace="", name="new", kind="Namespace", resource="namespaces")
    assert policy_for(request, policies, None).name == "a"


@pytest.mark.parametrize(("handling", "outcome"), [("default", "Patched"), ("leave", "Bypassed"), ("deny", "Denied")])
def test_setting_decides_on_pods_of_a_namespace_whose_labels_are_not_known(handling: str, outcome: str) -> None:
    policies = with_unknown(handling, SELECTOR)
    request = make_request(make_pod("trainer").annotate(TYPE, "training").obj(), namespace="new")
    verdict = admit_request(request, policy_for(request, policies, None), None)
    assert verdict.outcome == outcome
    known = policies.of_namespace("new", {})
    assert admit_request(request, known, None).outcome == "Patched"


def test_pod_that_no_policy_reads_is_not_denied_for_an_unknown_namespace() -> None:
    pod = make_pod("agent").owner("DaemonSet", "agent").annotate(TYPE, "training").obj()
    request = make_request(pod, namespace="new")
    assert admit_request(request, policy_for(request, with_unknown("deny", SELECTOR), None), None).outcome == "Bypassed"
