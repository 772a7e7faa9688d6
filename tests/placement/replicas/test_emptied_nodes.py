"""The nodes that could take a pod if no pod was running."""

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import make_storage_class
from tests.support.views import made_anew
from webhook.cluster.node_info import RunningPod
from webhook.placement.replicas.emptied_nodes import nodes_without_pods
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods


def test_nodes_that_running_pods_take_are_named_unless_something_else_is_missing() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    objects = [make_node_object("a", capacity={"nvidia.com/gpu": 8}), make_storage_class("fast")]
    snapshot = made_anew([*objects, make_pod("running").node_name("a").gpu(8).obj()])

    def nodes(pod: PodBuilder) -> tuple[str, tuple[str, ...]]:
        signature = PodSignature.of(pod.obj())
        return Scheduler().answer(signature, snapshot).verdict, nodes_without_pods(Scheduler(), signature, snapshot)

    assert nodes(make_pod().gpu(1)) == ("Waiting", ("a",))
    assert nodes(make_pod().gpu(1).spec(volumes=volumes)) == ("Waiting", ())
    assert nodes(make_pod().gpu(9)) == ("Infeasible", ())


def test_affinity_to_a_pod_that_is_only_assumed_is_kept() -> None:
    zone = "topology.kubernetes.io/zone"
    term = {"topologyKey": zone, "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [make_node_object(name, labels={zone: name}, capacity={"nvidia.com/gpu": 8}) for name in "ab"]
    full = [make_pod(f"full-{name}").node_name(name).gpu(8).label("app", "db").obj() for name in "ab"]
    snapshot = made_anew([*nodes, *full])
    database = RunningPod.of(make_pod("db").namespace("default").label("app", "db").obj()).assumed_on("a", 0)
    shown = AssumedPods(snapshot, {1: AssumedPod(database, 0)}).before(0)
    signature = PodSignature.of(make_pod().namespace("default").gpu(1).affinity(near).obj())

    assert nodes_without_pods(Scheduler(), signature, snapshot) == ()
    assert nodes_without_pods(Scheduler(), signature, shown) == ("a",)
