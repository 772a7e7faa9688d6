"""The control plane itself does what other tests take for granted."""

import json
import socket

import pytest

from tests.controlplane.build import pinned_minor
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import HeldPort, StartFailed
from tests.support.objects.builders import make_node_object, make_pod, match_expressions
from tests.support.objects.devices import exactly, make_resource_claim

GPU = {"nvidia.com/gpu": 8}


def test_the_release_is_the_pinned_one_or_newer(control_plane: ControlPlane) -> None:
    version = control_plane.client.request("GET", "/version").object
    assert int(version["minor"].rstrip("+")) >= pinned_minor()


def test_a_pod_is_bound_to_the_node_that_has_room(cluster: Cluster) -> None:
    cluster.make_node("without-gpu")
    cluster.make_node("with-gpu", capacity=GPU)
    pod = cluster.create(make_pod().gpu(8)).object
    assert cluster.wait_bound(pod) == "with-gpu"


def test_resources_of_a_deleted_pod_are_free_at_once(cluster: Cluster) -> None:
    cluster.make_node("node-1", capacity=GPU)
    for number in range(5):
        pod = cluster.create(make_pod(f"pod-{number}").gpu(8)).object
        assert cluster.wait_bound(pod) == "node-1"
        cluster.delete_pod(pod)


def test_a_pod_made_on_a_node_takes_its_room_at_once(cluster: Cluster) -> None:
    cluster.make_node("node-1", capacity=GPU)
    cluster.create(make_pod("there-already").gpu(8).node_name("node-1"))
    message = cluster.wait_unschedulable(cluster.create(make_pod().gpu(1)).object)
    assert message.startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


def test_an_unschedulable_pod_tells_why(cluster: Cluster) -> None:
    cluster.make_node("closed", unschedulable=True)
    cluster.make_node("tainted", taints=["maip.mxsf.io/node.usage=training:NoSchedule"])
    message = cluster.wait_unschedulable(cluster.create(make_pod()).object)
    assert message.startswith(
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )


def test_scores_are_those_of_every_feasible_node_and_plugin(cluster: Cluster) -> None:
    cluster.make_node("blue", labels={"colour": "blue"})
    cluster.make_node("red", labels={"colour": "red"})
    cluster.make_node("closed", unschedulable=True)
    preferred = {"matchExpressions": [{"key": "colour", "operator": "In", "values": ["red"]}]}
    pod = cluster.create(make_pod().requests(cpu=1).prefer_node(1, preferred)).object
    assert cluster.wait_bound(pod) == "red"
    scores = cluster.scores(pod)
    assert set(scores) == {"blue", "red"}
    assert (scores["blue"]["NodeAffinity"], scores["red"]["NodeAffinity"]) == (0, 200)
    assert scores["red"]["TaintToleration"] == 300


def test_the_binpack_profile_fills_a_node_before_it_opens_the_next(cluster: Cluster) -> None:
    for name in ("node-1", "node-2", "node-3"):
        cluster.make_node(name, capacity=GPU)
    pods = [cluster.create(make_pod(f"pod-{n}").gpu(2).scheduler("binpack")).object for n in range(4)]
    assert len({cluster.wait_bound(pod) for pod in pods}) == 1


def test_a_pod_stays_pending_while_the_scheduler_is_stopped(cluster: Cluster) -> None:
    cluster.make_node("node-1")
    cluster.control_plane.stop_scheduler()
    pod = cluster.create(make_pod()).object
    assert cluster.pods()[0]["spec"].get("nodeName") is None
    cluster.control_plane.start_scheduler()
    assert cluster.wait_bound(pod) == "node-1"


def test_the_scheduler_takes_another_configuration(cluster: Cluster) -> None:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "of-this-test"}],
    }
    cluster.control_plane.start_scheduler(configuration)
    cluster.make_node("node-1")
    pod = cluster.create(make_pod().scheduler("of-this-test")).object
    assert cluster.wait_bound(pod) == "node-1"


def test_a_scheduler_that_does_not_start_shows_the_end_of_its_log(cluster: Cluster) -> None:
    with pytest.raises(StartFailed, match=r"kube-scheduler: ended with 1\nthe end of .*kube-scheduler.log:\n"):
        cluster.control_plane.start_scheduler({"apiVersion": "v1", "kind": "Nonsense"})


def test_a_deployment_and_a_job_have_pods_once_controllers_run(cluster: Cluster) -> None:
    cluster.control_plane.start_controller_manager()
    cluster.make_node("node-1")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "server"}},
            "template": make_pod().label("app", "server").template(),
        },
    }
    job_template = make_pod().label("app", "trainer").spec(restartPolicy="Never").template()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "trainer"}, "spec": {"template": job_template}}
    cluster.create(deployment)
    cluster.create(job)
    replicas = cluster.wait_pods(2, "app=server")
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in replicas} == {"ReplicaSet"}
    workers = cluster.wait_pods(1, "app=trainer")
    assert workers[0]["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert {cluster.wait_bound(pod) for pod in replicas + workers} == {"node-1"}


def test_kubectl_works_in_the_namespace_of_the_test(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(make_pod("by-kubectl").obj()))
    assert [pod["metadata"]["name"] for pod in cluster.pods()] == ["by-kubectl"]
    assert cluster.kubectl("get", "pod", "absent", check=False).returncode == 1


def test_api_server_accepts_the_objects_of_the_builders(cluster: Cluster) -> None:
    node = make_node_object("node-1", annotations={"a": "b"}, taints=["key=value:NoSchedule", "key:NoExecute"])
    cluster.make_nodes(node)
    term = match_expressions(("zone", "In", ["a", "b"]), ("gpu", "Exists", []))
    pod = (
        make_pod()
        .annotate("a", "b")
        .label("app", "server")
        .owner("ReplicaSet", "server")
        .requests(cpu="500m", memory="1Gi")
        .gpu(2)
        .container("second", cpu=1)
        .init_container("first", cpu=2)
        .sidecar("beside", cpu="100m")
        .host_port(8080, host_ip="127.0.0.1")
        .pod_resources(cpu=4)
        .toleration("key", operator="Exists", effect="NoExecute", seconds=30)
        .toleration(operator="Exists")
        .node_selector("zone", "a")
        .require_node(term, term)
        .prefer_node(5, term)
        .scheduler("volcano")
    )
    taken = cluster.create(pod, dry_run=True).object
    asked = pod.obj()
    assert taken["spec"]["affinity"] == asked["spec"]["affinity"]
    assert taken["spec"]["tolerations"][:2] == asked["spec"]["tolerations"]
    assert taken["metadata"]["ownerReferences"] == asked["metadata"]["ownerReferences"]
    assert cluster.pods() == []


def test_unknown_field_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="unknown field") as refusal:
        cluster.create(make_pod().spec(nodeNmae="node-1"))
    assert (refusal.value.code, refusal.value.reason) == (400, "BadRequest")


def test_warnings_of_the_api_server_are_returned(cluster: Cluster) -> None:
    answer = cluster.create(make_pod().node_selector("beta.kubernetes.io/arch", "amd64"))
    assert answer.warnings == [
        'spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead'
    ]


def test_another_user_has_the_rights_that_rbac_grants(cluster: Cluster) -> None:
    other_user = cluster.client.impersonating("nobody", ["system:authenticated"])
    with pytest.raises(ApiError) as refusal:
        other_user.list("Pod", cluster.namespace)
    assert refusal.value.reason == "Forbidden"


def test_a_registered_webhook_is_in_force_at_once(cluster: Cluster) -> None:
    cluster.register_webhook("https://127.0.0.1:1/mutate", cluster.control_plane.ca_pem, failurePolicy="Fail")
    with pytest.raises(ApiError, match="failed calling webhook"):
        cluster.create(make_pod())


def test_audit_event_contains_the_changes_of_webhooks(cluster: Cluster) -> None:
    cluster.register_webhook("https://127.0.0.1:1/mutate", cluster.control_plane.ca_pem, failurePolicy="Ignore")
    event = cluster.audit_event(cluster.create(make_pod()))
    assert (
        event["annotations"]["failed-open.mutation.webhook.admission.k8s.io/round_0_index_0"]
        == "placement-webhook.maip.mxsf.io"
    )


def test_nothing_of_a_test_is_left_for_the_next(control_plane: ControlPlane) -> None:
    made = Cluster(control_plane)
    made.register_webhook("https://127.0.0.1:1/mutate", control_plane.ca_pem, failurePolicy="Ignore")
    made.make_node("node-1")
    made.create(make_pod("finalized").spec(nodeName="node-1"))
    made.client.create(make_pod("in-default").obj())
    spec = {"replicas": 0, "selector": {"app": "a"}, "template": make_pod().label("app", "a").template()}
    made.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": spec})
    made.remove_everything()
    client = control_plane.client
    assert client.list("Node") == client.list("Pod") == client.list("ReplicationController") == []
    assert client.list("MutatingWebhookConfiguration", api_version="admissionregistration.k8s.io/v1") == []
    assert made.namespace not in [namespace["metadata"]["name"] for namespace in client.list("Namespace")]


def test_what_is_made_while_a_test_is_cleaned_up_is_not_left_for_the_next(cluster: Cluster) -> None:
    cleanup = cluster.remove_registrations()
    cluster.create(make_resource_claim("late", exactly()))
    cleanup.remove_namespaces()
    assert cluster.client.list("ResourceClaim", api_version="resource.k8s.io/v1") == []


@pytest.mark.parametrize("reuse_port", [False, True])
def test_a_server_listens_on_a_port_that_is_held(reuse_port: bool) -> None:
    with (
        HeldPort() as port,
        socket.create_server(("127.0.0.1", port.number), reuse_port=reuse_port) as server,
        socket.create_connection(("127.0.0.1", port.number)) as client,
        server.accept()[0] as accepted,
    ):
        assert accepted.getpeername() == client.getsockname()


def test_a_held_port_is_given_to_no_other_socket() -> None:
    with HeldPort() as port, socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", port.number))
