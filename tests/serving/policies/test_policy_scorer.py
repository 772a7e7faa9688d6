"""`serve --scheduler-config`: the profile of a pod's schedulerName predicts its node."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.objects.admission import admit_request
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.config.profile_loader import parse_profiles
from webhook.policy.policy import Policy
from webhook.serving.policies.policy_scorer import PolicyScorer

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
    assert verdict.outcome == "Patched"
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


def scorers() -> tuple[PolicyScorer, list[Policy]]:
    """Return a PolicyScorer, and the policies for which it has made a scorer."""
    made: list[Policy] = []

    def make(policy: Policy) -> BackendSchedulers:
        made.append(policy)
        return scheduler_for(policy)

    return PolicyScorer(make, _POLICY), made


@pytest.mark.parametrize(
    ("spec", "makes"),
    [
        pytest.param({}, False, id="nothing differs"),
        pytest.param({"mode": "shadow", "priority": 7}, False, id="what no prediction reads"),
        pytest.param({"placementCheck": {"mode": "deny"}}, False, id="what is done with a prediction"),
        pytest.param({"placementCheck": {"profile": "binpack"}}, True, id="the profile"),
        pytest.param({"allowedSchedulers": ["volcano"]}, True, id="a field that predictions read"),
    ],
)
def test_policies_share_a_scorer_unless_predictions_differ(spec: dict[str, Any], makes: bool) -> None:
    found, made = scorers()
    first, other = found.of(_POLICY), policy_with(**spec)

    assert (found.of(other) is not first) == makes
    assert found.of(_POLICY) is first
    assert made == [_POLICY, *([other] if makes else [])]


def test_the_scorers_of_the_four_policies_used_last_are_kept() -> None:
    found, made = scorers()
    policies = [policy_with(allowedSchedulers=["volcano", f"scheduler-{number}"]) for number in range(4)]
    kept = [found.of(each) for each in policies]
    assert len(found.caches) == 4 * len(kept[0].scorer.caches)

    # The first one is used again before a fifth one comes, so the second one is dropped.
    assert found.of(policies[0]) is kept[0]
    found.of(_POLICY)
    assert [found.of(policies[number]) is kept[number] for number in (0, 2, 3)] == [True] * 3
    assert found.of(policies[1]) is not kept[1]
    assert made == [_POLICY, *policies, _POLICY, policies[1]]
