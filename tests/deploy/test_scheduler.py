"""The scheduler configuration, as the real kube-scheduler reads it."""

import json

import pytest

from tests.acceptance.placing.pools import pool_node, training_pod
from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, admit_pod
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.manifests import read_one
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.kube.api.json_patch import patched
from webhook.kube.names import HOSTNAME_LABEL
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.profiles.profile import BINPACK, DEFAULT, Profile
from webhook.placement.scheduler import Scheduler


@pytest.fixture
def configured(cluster: Cluster) -> Cluster:
    """A cluster whose scheduler runs with the file, and two empty GPU nodes."""
    cluster.control_plane.start_scheduler(read_one("scheduler/kube-scheduler-configuration.yaml"))
    for name in ("gpu-1", "gpu-2"):
        cluster.make_nodes(make_node_object(name, labels={HOSTNAME_LABEL: name}, capacity={"nvidia.com/gpu": 8}))
    return cluster


def nodes_of(cluster: Cluster, scheduler: str) -> list[str]:
    """Where four pods of one ReplicaSet go, one after the other, each with a quarter of a node's GPUs."""
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}
    cluster.create({"apiVersion": "v1", "kind": "Service", **service})
    pods = [make_pod(f"p{i}").label("app", "a").gpu(2).scheduler(scheduler) for i in range(4)]
    return [cluster.wait_bound(cluster.create(pod).object) for pod in pods]


def test_binpack_scheduler_fills_a_node_before_it_opens_the_next(configured: Cluster) -> None:
    assert len(set(nodes_of(configured, "binpack-scheduler"))) == 1


def test_default_scheduler_goes_on_as_before(configured: Cluster) -> None:
    assert len(set(nodes_of(configured, "default-scheduler"))) == 2


def packed(name: str, scheduler: str, gpus: int = 1) -> Object:
    """A training pod with the packing hint and the preferred pool that the webhook injects."""
    pod = training_pod(name, gpus).annotate(f"{DOMAIN}/scheduler", scheduler)
    verdict = admit_pod(pod.obj())
    assert verdict.outcome == "Patched"
    return patched(pod.obj(), verdict.operations)


@pytest.mark.parametrize(
    ("scheduler", "profile", "node"),
    [
        pytest.param("binpack-scheduler", BINPACK, "training-1", id="the preferred pool wins"),
        pytest.param("default-scheduler", DEFAULT, "hybrid-1", id="the hint offsets the preferred pool"),
    ],
)
def test_packed_pods_on_a_hybrid_node_against_a_free_training_node(
    configured: Cluster, scheduler: str, profile: Profile, node: str
) -> None:
    """Under the default weights, hint and pool preference score 200 each, and the larger node decides."""
    hybrid = pool_node("hybrid-1", "hybrid")
    hybrid["status"]["capacity"]["cpu"] = hybrid["status"]["allocatable"]["cpu"] = "256"
    configured.make_nodes(pool_node("training-1", "training"), hybrid)
    earlier = packed("earlier", scheduler, gpus=6)
    earlier["spec"]["nodeName"] = "hybrid-1"
    configured.create(earlier)
    printed = configured.kubectl("get", "nodes,pods,namespaces", "--all-namespaces", "--output=json").stdout
    pod = packed("next", scheduler)

    predicted = Scheduler(profile).place(pod, snapshot_from_documents(parse(printed, "cluster"))).node
    bound = configured.wait_bound(configured.create(pod).object)

    assert (predicted, bound) == (node, node)


def test_extender_outweighs_the_score_plugins_of_its_example() -> None:
    """One step of its score counts 10 times its weight, and a plugin up to 100 times its weight.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, prioritizeNodes
    """
    content = read_one("scheduler/kube-scheduler-extender.yaml")
    (profile,) = parse_profiles(json.dumps(content), "example").values()
    (extender,) = content["extenders"]

    assert 10 * extender["weight"] > 100 * sum(weight for _, weight in profile.scores)
