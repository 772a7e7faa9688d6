"""`serve --scheduler-config`: the profile of a pod's schedulerName predicts its node."""

from pathlib import Path

import pytest

from tests.support.admission import TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised, Patched
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.objects.admission import admit_request
from webhook.placement.config.profile_loader import parse_profiles

_CONFIGURATION = Path(__file__).parents[3] / "deploy/scheduler/kube-scheduler-configuration.yaml"
_ON_NO_NODE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
      {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [absent]}]}]}}}}
"""
_POLICY = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}})


def view(configuration: str) -> ClusterView:
    """The view of an empty node and one in use, with the profiles of `configuration`."""
    running = make_pod("running").node_name("used").requests(cpu="4", memory="16Gi").obj()
    nodes = [make_node_object(name, labels={USAGE: "training"}) for name in ("empty", "used")]
    snapshot = snapshot_from_documents([Document("cluster", each) for each in (*nodes, running)])
    profiles = parse_profiles(configuration, "config.yaml") if configuration else {}
    return ClusterView(snapshot, scheduler_for(_POLICY, profiles=profiles), profiles=profiles)


def training(scheduler: str) -> PodBuilder:
    """A pod of this scheduler."""
    return make_pod("trainer").annotate(TYPE, "training").requests(cpu="1", memory="1Gi").scheduler(scheduler)


@pytest.mark.parametrize(
    ("scheduler", "node"),
    [
        pytest.param("default-scheduler", "empty", id="of the configuration, spreads"),
        pytest.param("binpack-scheduler", "used", id="of the configuration, packs"),
        pytest.param("other", "empty", id="no profile: that of the policy"),
    ],
)
def test_the_profile_of_the_scheduler_name_predicts_the_node(scheduler: str, node: str) -> None:
    verdict = admit_pod(training(scheduler).obj(), _POLICY, view(_CONFIGURATION.read_text()))
    assert isinstance(verdict, Patched)
    assert (verdict.placement.verdict, verdict.placement.node) == ("Feasible", node)


def test_the_replicas_of_an_object_are_placed_by_the_same_profile() -> None:
    template = training("default-scheduler").obj()
    content = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "template": {**template, "metadata": {**template["metadata"], "annotations": {TYPE: "training"}}},
        },
    }
    request = make_request(content, kind="Deployment", resource="deployments", group="apps")
    anywhere, pinned = (admit_request(request, _POLICY, view(text)) for text in ("", _ON_NO_NODE))
    assert isinstance(anywhere, Advised)
    assert isinstance(pinned, Advised)
    assert [each.placement and each.placement.verdict for each in (anywhere, pinned)] == ["Feasible", "Infeasible"]
