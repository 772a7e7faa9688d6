"""A set of equal pods: their names, their claims, and their fields in the object."""

from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import (
    SPEC,
    TEMPLATE,
    apps,
    jobset,
    kubeflow,
    leader_worker_set,
    workload,
)
from webhook.kube.workloads.pod_set import pod_name


@pytest.mark.parametrize(
    ("content", "owner"),
    [
        (apps("Deployment"), ("ReplicaSet", "web")),
        (apps("StatefulSet"), ("StatefulSet", "web")),
        (apps("DaemonSet"), ("DaemonSet", "web")),
        (workload("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}), ("Job", "web")),
        (kubeflow("MPIJob", "mpiReplicaSpecs", Launcher=1), ("Job", "web-launcher")),
        (jobset(), ("Job", "web-node-0")),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_pod_names_its_controller(content: dict[str, Any], owner: tuple[str, str]) -> None:
    (reference,) = sets_of(content)[0].pod["metadata"]["ownerReferences"]

    assert (reference["kind"], reference["name"]) == owner


def test_an_object_without_a_name_gives_its_pods_generated_ones() -> None:
    (generated,) = sets_of({**apps("StatefulSet"), "metadata": {"generateName": "run-"}})
    (nameless,) = sets_of({**apps("StatefulSet"), "metadata": None})

    assert pod_name(generated.pod) == "default/run-"
    assert pod_name(nameless.pod) == "default/statefulset-"
    assert generated.pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "run"


@pytest.mark.parametrize(("content", "name"), [(apps("Deployment"), "run-"), (jobset(), "run-node-0-")])
@pytest.mark.parametrize("prefix", ["run-", "run"])
def test_owner_of_pods_of_an_object_without_a_name_has_a_name_that_no_object_has(
    content: dict[str, Any], name: str, prefix: str
) -> None:
    *_, found = sets_of({**content, "metadata": {"generateName": prefix}})

    assert found.pod["metadata"]["ownerReferences"][0]["name"] == name


def test_name_and_namespace_are_those_of_the_owner_not_of_the_template() -> None:
    """Source: k8s.io/kubernetes/pkg/controller/controller_utils.go, GetPodFromTemplate copies neither."""
    template = {"metadata": {"name": "mine", "namespace": "elsewhere"}, "spec": {}}
    (found,) = sets_of(apps("Deployment", template=template))

    assert pod_name(found.pod) == "team-a/web-"


def test_a_million_million_replicas_cost_nothing() -> None:
    content = leader_worker_set()
    content["spec"]["replicas"] = content["spec"]["leaderWorkerTemplate"]["size"] = 2**31 - 1
    worker = sets_of(content)[1]

    assert worker.replicas == (2**31 - 1) * (2**31 - 2)
    assert pod_name(worker.pod_at(worker.replicas - 1)) == "team-a/web-2147483646-2147483646"


def test_fields_of_the_pod_are_located_in_the_object() -> None:
    (found,) = sets_of(apps("Deployment"))

    assert found.locate("metadata.annotations[a/b]") == "spec.template.metadata.annotations[a/b]"
    assert found.locate("spec.tolerations[0].key") == "spec.template.spec.tolerations[0].key"
    assert found.locate("spec") == "spec.template.spec"
    assert found.locate("metadata.labels") == "spec.template.metadata.labels"
    assert found.locate("") == "spec.template"


def test_claims_of_a_stateful_set_are_volumes_of_its_pods() -> None:
    """Source: k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_utils.go, updateStorage."""
    claim = {"metadata": {"name": "data", "labels": {"a": "b"}}, "spec": {"storageClassName": "local"}}
    spec = {**SPEC, "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}
    content = apps("StatefulSet", replicas=2, template={"spec": spec}, volumeClaimTemplates=[claim])
    (found,) = sets_of(content)

    assert found.pod_at(1)["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert found.claims_at(1) == (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-web-1", "namespace": "team-a", "labels": {"a": "b"}},
            "spec": {"storageClassName": "local"},
        },
    )
