"""Decisions on pods, with and without a memory of others."""

from typing import Any

from tests.support.admission import USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object
from tests.support.servers.server import make_work_budget
from webhook.admission.cluster_view import ClusterView
from webhook.admission.evaluation import PolicyResult, evaluate
from webhook.admission.pod_content import PodContent
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.policy.policy import Policy
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import Rendered

POLICY = policy_with()


def view_of(defaults: dict[str, str] | None = None) -> ClusterView:
    """Return the view of a server: a node of 8 GPUs, where no pod waits, and the annotations of the namespace."""
    node = make_node_object("node-1", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 8})
    metadata = {"name": "default", "annotations": defaults or {}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (node, namespace))
    return ClusterView(snapshot, Scheduler(), assumed=AssumedPods(snapshot))


VIEW = view_of()


def decided(
    decisions: DecisionCache,
    pod: PodBuilder,
    policy: Policy = POLICY,
    cluster: ClusterView | None = VIEW,
    **fields: Any,
) -> Rendered:
    return decisions.decide(make_request(pod.obj(), **fields), policy, cluster, make_work_budget())


def evaluated(pod: PodBuilder) -> PolicyResult:
    return evaluate(PodContent(make_request(pod.obj()), {}), POLICY)
