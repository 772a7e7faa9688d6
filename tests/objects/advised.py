"""Workload objects, and the advice on them."""

from dataclasses import replace
from typing import Any

from tests.support.admission import DOMAIN, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Bypassed
from webhook.admission.verdict import Advised, ObjectVerdict, Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.names import HOSTNAME_LABEL
from webhook.objects.admission import admit_request
from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, assume
from webhook.policy.policy import Policy

DEPLOYMENT, STATEFUL_SET, JOB_SET, RAY = (
    next(each for each in SAMPLES if each.kind == kind)
    for kind in ("Deployment", "StatefulSet", "JobSet", "RayCluster")
)


def gpu_node(name: str, *running: PodBuilder) -> list[Object]:
    node = make_node_object(
        name,
        labels={USAGE: "training", HOSTNAME_LABEL: name},
        taints=[f"{USAGE}=training:NoSchedule"],
        capacity={"nvidia.com/gpu": 8},
    )
    return [node, *(pod.node_name(name).obj() for pod in running)]


def view(*nodes: list[Object]) -> ClusterView:
    objects = [Document("cluster", each) for node in nodes for each in node]
    return ClusterView(snapshot_from_documents(objects), scheduler_for(policy_with()))


# A template without a type is not split from the others.
ONE_SCHEDULER = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}})
TWO_NODES = view(gpu_node("n1"), gpu_node("n2"))


def template(gpus: int = 4, **annotations: str) -> Object:
    pod = make_pod("").gpu(gpus).label("app", APP["app"]).annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod.template()


def admitted(
    content: Object,
    cluster: ClusterView | None = None,
    policy: Policy | None = None,
    *,
    old: Object | None = None,
    **request: Any,
) -> Verdict | ObjectVerdict:
    group, _, _ = content["apiVersion"].rpartition("/")
    fields = {
        "kind": content["kind"],
        "group": group,
        "resource": "",
        "operation": "CREATE" if old is None else "UPDATE",
        "old_object": old,
        "namespace": "team-a",
        "name": "web",
    }
    return admit_request(make_request(content, **(fields | request)), policy or policy_with(), cluster)


def warnings_of(verdict: Verdict | ObjectVerdict) -> tuple[str, ...]:
    assert isinstance(verdict, Advised | Bypassed), verdict
    return verdict.warnings


def running(number: int) -> PodBuilder:
    return make_pod(f"web-{number}").namespace("team-a").gpu(4).label("app", APP["app"])


def waiting(*pods: PodBuilder) -> ClusterView:
    """Return the view of two nodes on which `pods` have room on n1."""
    assumed: AssumedPods[str] = AssumedPods(TWO_NODES.snapshot, {})
    for number, each in enumerate(pods):
        pod = WaitingPod.of(each.namespace("team-a").obj())
        on_n1 = replace(Placement.unknown(""), verdict="Feasible", node="n1")
        assume(f"waiting-{number}", pod, on_n1, assumed)
    return replace(TWO_NODES, assumed=assumed)
