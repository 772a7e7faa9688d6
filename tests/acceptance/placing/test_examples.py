"""The examples on the real control plane: what kubectl prints, what their pods hold, where kube-scheduler binds them.

The kinds of operators are minimal CustomResourceDefinitions of ours, whose objects hold anything. No operator runs: the
first pod of each template is created as `pod_sets` says that its controller creates it.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

import jsonpatch
import pytest
import yaml

from tests.acceptance.conftest import Webhook, registered_as_shipped
from tests.controlplane.client import Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.examples.expectations import CLUSTER, MANIFESTS, expected_path
from tests.support.admission import DOMAIN
from tests.support.programs.messages import first_sentence
from webhook.documents.documents import parse
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.placement.scheduler import Scheduler
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS

VIEW = "pvc,pv,storageclasses,csinodes,csidrivers,volumeattachments"


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Cluster:
    """The cluster of the examples."""
    objects = objects_of(CLUSTER)
    for content in objects:
        if content["kind"] == "Namespace":
            shared_cluster.client.create(content)
    shared_cluster.make_nodes(*(content for content in objects if content["kind"] == "Node"))
    for content in objects:
        if content["kind"] == "Pod":
            content["spec"]["containers"][0]["image"] = "plain"
        if content["kind"] not in ("Namespace", "Node"):
            shared_cluster.create(content)
    return shared_cluster


@pytest.fixture(scope="module")
def webhook_of_examples(
    cluster: Cluster, custom_kinds: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """The webhook as deploy/ registers it, with a view of the cluster of the examples."""
    with registered_as_shipped(cluster, tmp_path_factory.mktemp("webhook")) as webhook:
        webhook.look_at(cluster, VIEW)
        yield webhook


@pytest.fixture(params=MANIFESTS, ids=lambda path: path.stem)
def manifest(request: pytest.FixtureRequest, webhook_of_examples: Webhook, cluster: Cluster) -> Iterator[Path]:
    """A manifest of examples/. At the end, the cluster is again as it was."""
    control_plane = cluster.control_plane
    before = {*control_plane.stored_keys()}
    yield request.param
    control_plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", str(request.param))
    cluster.remove_added(before)
    assert {*control_plane.stored_keys()} == before


def test_an_example_does_on_a_cluster_what_the_file_beside_it_says(
    cluster: Cluster, webhook_of_examples: Webhook, manifest: Path
) -> None:
    expected: Objects = yaml.safe_load(expected_path(manifest).read_text())

    applied = cluster.control_plane.kubectl("apply", "-f", str(manifest))

    # tests/cli/check has the suggestions, and the warnings of gangs that would start in part; tests/objects those of
    # templates with two schedulers.
    left_out = ("placement check: suggestion: ", " that must run together would start ", ", so its pods go to ")
    said = [line for line in applied.stderr.splitlines() if not any(part in line for part in left_out)]
    assert said == printed(expected)
    sets = [pods for content in objects_of(manifest) for pods in pod_sets(content, kinds_by_name())]
    for pods, outcome in zip(sets, expected, strict=True):
        pod = created_by_controller(pods)
        for claim in pods.claims_at(0):
            cluster.create(claim)
        stored = pod if pods.kind is None else cluster.create(pod).object
        wanted = cluster.create(without_webhook(pod, outcome["injected"], webhook_of_examples), dry_run=True).object
        stored = cluster.client.get("Pod", stored["metadata"]["name"], stored["metadata"]["namespace"])
        assert injectable(stored) == injectable(wanted)
        assert_placed(cluster, webhook_of_examples, stored, outcome)


def objects_of(file: Path) -> Objects:
    return [document.content for document in parse(file.read_bytes(), file.name)]


def printed(expected: Objects) -> list[str]:
    """Return what kubectl prints for an object whose pod templates are `expected`: nothing about pods that fit."""
    warnings = [warning for outcome in expected for warning in outcome.get("warnings", [])]
    counts = ", ".join(f"{each.get('role')} {each.get('fits')} of {each.get('replicas')}" for each in expected)
    warnings += [
        f"placement check: Waiting: {counts} replicas fit now; "
        f"the first {each['role']}: {first_sentence(each['message'])}"
        for each in expected
        if each["verdict"] == "Waiting"
    ]
    return [f"Warning: {warning}" for warning in warnings]


def created_by_controller(pods: PodSet) -> Object:
    """Return the first pod, with what the API server requires of a reference to an owner.

    The serving runtime of a model, which is no part of the example, adds the image.
    """
    references = [
        each | {"apiVersion": "example.com/v1", "uid": "00000000-0000-0000-0000-000000000000"}
        for each in pods.pod["metadata"].get("ownerReferences", [])
    ]
    containers = [{"image": "runtime"} | each for each in pods.pod["spec"]["containers"]]
    return pods.pod | {
        "metadata": pods.pod["metadata"] | {"ownerReferences": references},
        "spec": pods.pod["spec"] | {"containers": containers},
    }


def without_webhook(pod: Object, injected: Objects, webhook: Webhook) -> Object:
    """Return the pod with `injected`, left alone by the webhook."""
    filled = json.dumps(injected, ensure_ascii=False).replace("…", webhook.world.policy.revision)
    changed: Object = jsonpatch.apply_patch(pod, json.loads(filled))
    changed["metadata"] = {"generateName": "wanted-", **changed["metadata"]}
    changed["metadata"].pop("name", None)
    changed["metadata"].setdefault("annotations", {})[f"{DOMAIN}/inject"] = "disabled"
    return changed


def injectable(pod: Object) -> Object:
    """Return the whole spec, and the labels and annotations, in an order that does not depend on who wrote first."""
    metadata, spec = pod["metadata"], {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    annotations = metadata.get("annotations", {})
    return {
        "labels": metadata.get("labels", {}),
        "annotations": {key: annotations[key] for key in annotations if key not in IRRELEVANT},
        "spec": spec | {"tolerations": sorted(spec["tolerations"], key=str)},
    }


IRRELEVANT = (f"{DOMAIN}/inject", "kubectl.kubernetes.io/last-applied-configuration")


def assert_placed(cluster: Cluster, webhook: Webhook, pod: Object, outcome: Object) -> None:
    """Compare what kube-scheduler does with `pod` with the verdict of `outcome`; without one there is nothing to do."""
    if outcome["verdict"] == "Feasible":
        provision(cluster, pod)
        assert cluster.wait_bound(pod) in equally_good(webhook, pod, outcome["nodes"])
    elif outcome["verdict"] == "Waiting":
        assert cluster.first_refusal(pod).startswith(outcome["message"])
    else:
        assert outcome["verdict"] == "Unknown"


def equally_good(webhook: Webhook, pod: Object, nodes: Collection[str]) -> set[str]:
    """Return `nodes` and those with the score of one of them: kube-scheduler chooses among these at random.

    They are what Volcano would choose for its pods, and kube-scheduler can choose any other that fits.
    """
    assert webhook.world.cluster is not None
    unbound = pod | {"spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
    scores = Scheduler().place(unbound, webhook.world.cluster.snapshot).scores
    if pod["spec"]["schedulerName"] in BUILT_IN_SCHEDULERS:
        # A profile of kube-scheduler has the name here. The real ones are in tests/schedulers.
        return set(scores)
    totals = {scores[node]["total"] for node in nodes if node in scores}
    return {*nodes, *(node for node in scores if scores[node]["total"] in totals)}


def provision(cluster: Cluster, pod: Object) -> None:
    """Do the part of a CSI provisioner for the claims of `pod`, once kube-scheduler has chosen a node for them."""
    namespace = pod["metadata"]["namespace"]
    for volume in pod["spec"].get("volumes", []):
        if "persistentVolumeClaim" not in volume:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]

        def chosen(name: str = name) -> Object | None:
            claim = cluster.client.get("PersistentVolumeClaim", name, namespace)
            return claim if "volume.kubernetes.io/selected-node" in claim["metadata"].get("annotations", {}) else None

        claim = wait_for(chosen, f"a node for the claim {name}")
        reference = {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]}
        spec = {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": reference,
            "csi": {"driver": "disk.csi.example.com", "volumeHandle": name},
        }
        cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": name}}
        cluster.client.patch("PersistentVolumeClaim", name, bound, namespace=namespace)
