"""Queues that objects name are held to the limits of their namespace, like those that pods name."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import SAMPLES, Object
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised
from webhook.objects.admission import admit_request

LIMITS = {"namespaceLimits": [{"namespaces": ["lab"], "queues": ["lab-*"]}]}
TRAINING = make_pod("").label("app", "web").annotate(TYPE, "training").template()
DENIAL = 'namespace "lab" may not use queue "other"; allowed queues: lab-*'
KAI_QUEUE, KUEUE_QUEUE, VOLCANO_LABEL = "kai.scheduler/queue", "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"


def workload(kind: str, group: str, template: Object = TRAINING, spec: Object | None = None, **metadata: Any) -> Object:
    made = next(each for each in SAMPLES if (each.kind, each.group) == (kind, group)).object(template)
    return {**made, "metadata": made["metadata"] | metadata, "spec": made["spec"] | (spec or {})}


def group_object(api_version: str, kind: str, **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def admitted(obj: Object, *, old: Object | None = None, namespace: str = "lab", **policy: Any) -> Any:
    request = make_request(
        obj,
        namespace=namespace,
        kind=obj["kind"],
        group=obj["apiVersion"].rpartition("/")[0],
        resource="",
        name="web",
        operation="CREATE" if old is None else "UPDATE",
        old_object=old,
    )
    return admit_request(request, policy_with(**(LIMITS | policy)), None)


KUBEFLOW = {"runPolicy": {"schedulingPolicy": {"queue": "other"}}}
UNTYPED = make_pod("").label("app", "web").template()
WITHOUT_EFFECT = make_pod("").label("app", "web").annotate(f"{DOMAIN}/gang", "g").template()


def typed_first() -> Object:
    """Return a JobSet whose second template has annotations and no workload type."""
    made = workload("JobSet", "jobset.x-k8s.io", labels={KUEUE_QUEUE: "other"})
    (job,) = made["spec"]["replicatedJobs"]
    (untyped,) = workload("JobSet", "jobset.x-k8s.io", WITHOUT_EFFECT)["spec"]["replicatedJobs"]
    made["spec"]["replicatedJobs"] = [job, untyped | {"name": "untyped"}]
    return made


NAMING = {
    "Kueue's label on a JobSet with one workload type": (typed_first(), f"metadata.labels[{KUEUE_QUEUE}]"),
    "a Volcano Job": (workload("Job", "batch.volcano.sh", spec={"queue": "other"}), "spec.queue"),
    "a Volcano Job without a workload type": (
        workload("Job", "batch.volcano.sh", UNTYPED, {"queue": "other"}),
        "spec.queue",
    ),
    "a PyTorchJob": (
        workload("PyTorchJob", "kubeflow.org", spec=KUBEFLOW),
        "spec.runPolicy.schedulingPolicy.queue",
    ),
    "an MPIJob": (workload("MPIJob", "kubeflow.org", spec=KUBEFLOW), "spec.runPolicy.schedulingPolicy.queue"),
    "Kueue's label on a Job": (
        workload("Job", "batch", labels={KUEUE_QUEUE: "other"}),
        f"metadata.labels[{KUEUE_QUEUE}]",
    ),
    "KAI's label on a Deployment": (
        workload("Deployment", "apps", labels={KAI_QUEUE: "other"}),
        f"metadata.labels[{KAI_QUEUE}]",
    ),
    "Volcano's label on a RayCluster": (
        workload("RayCluster", "ray.io", labels={VOLCANO_LABEL: "other"}),
        f"metadata.labels[{VOLCANO_LABEL}]",
    ),
    "Volcano's annotation on a LeaderWorkerSet": (
        workload("LeaderWorkerSet", "leaderworkerset.x-k8s.io", annotations={VOLCANO_QUEUE: "other"}),
        f"metadata.annotations[{VOLCANO_QUEUE}]",
    ),
    "a PodGroup of Volcano": (group_object("scheduling.volcano.sh/v1beta1", "PodGroup", queue="other"), "spec.queue"),
    "a PodGroup of KAI": (group_object("scheduling.run.ai/v2alpha2", "PodGroup", queue="other"), "spec.queue"),
    "a Workload of Kueue": (group_object("kueue.x-k8s.io/v1beta1", "Workload", queueName="other"), "spec.queueName"),
}


@pytest.mark.parametrize(("obj", "path"), NAMING.values(), ids=NAMING)
def test_a_queue_that_the_namespace_may_not_use_is_denied(obj: Object, path: str) -> None:
    verdict = admitted(obj)

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.message) == (403, f"{path}: Forbidden: {DENIAL}")
    assert [each.path for each in verdict.errors] == [path]


@pytest.mark.parametrize(("obj", "path"), NAMING.values(), ids=NAMING)
def test_a_lenient_policy_warns(obj: Object, path: str) -> None:
    verdict = admitted(obj, invalidAnnotations="warn")

    assert not isinstance(verdict, Denied)
    assert f"{path}: Forbidden: {DENIAL}" in verdict.warnings


@pytest.mark.parametrize(("obj", "path"), NAMING.values(), ids=NAMING)
@pytest.mark.parametrize(("own", "general"), [("deny", "warn"), ("warn", "deny")])
def test_the_setting_for_objects_wins_over_that_for_all(obj: Object, path: str, own: str, general: str) -> None:
    verdict = admitted(obj, invalidAnnotations=general, workloadObjects={"invalidAnnotations": own})

    assert isinstance(verdict, Denied) is (own == "deny")


@pytest.mark.parametrize(("obj", "path"), NAMING.values(), ids=NAMING)
def test_a_change_of_the_queue_is_denied_and_no_other_change_of_the_object(obj: Object, path: str) -> None:
    """The limits can be newer than the object."""
    before = {
        **obj,
        "metadata": {"name": "web"},
        "spec": {**obj["spec"], "queue": "", "queueName": "", "runPolicy": {}},
    }

    assert isinstance(admitted(obj, old=before), Denied)
    assert not isinstance(admitted(obj, old=obj), Denied)


@pytest.mark.parametrize(
    "obj",
    [
        workload("Job", "batch.volcano.sh", spec={"queue": "lab-a"}),
        workload("Job", "batch.volcano.sh", spec={"queue": "default"}),
        group_object("scheduling.volcano.sh/v1beta1", "PodGroup", queue="default"),
        group_object("scheduling.run.ai/v2alpha2", "PodGroup", queue="default-queue"),
        group_object("scheduling.volcano.sh/v1beta1", "PodGroup"),
        workload("Deployment", "apps", UNTYPED, labels={KAI_QUEUE: "other"}),
        workload("Job", "batch.volcano.sh", UNTYPED, {"queue": "lab-a"}, labels={KUEUE_QUEUE: "other"}),
    ],
    ids=[
        "allowed",
        "default of a Job",
        "default of Volcano",
        "default of KAI",
        "none",
        "pods without a type",
        "label of a Job whose pods have no type",
    ],
)
def test_what_pods_may_have_their_objects_may_have(obj: Object) -> None:
    assert not isinstance(admitted(obj), Denied)


def test_another_namespace_has_no_limits() -> None:
    (group, _), (job, _) = NAMING["a PodGroup of KAI"], NAMING["a Volcano Job"]

    assert isinstance(admitted(group, namespace="team-a"), Bypassed)
    assert isinstance(admitted(job, namespace="team-a"), Advised)


def test_the_setting_for_workload_objects_switches_it_off() -> None:
    assert isinstance(admitted(NAMING["a PodGroup of KAI"][0], workloadObjects={"enabled": False}), Bypassed)


def test_all_that_is_wrong_with_an_object_is_reported_at_once() -> None:
    template = make_pod("").annotate(TYPE, "training").annotate(f"{DOMAIN}/queue", "other").template()
    verdict = admitted(workload("Job", "batch.volcano.sh", template, spec={"queue": "other"}))

    assert [each.path for each in verdict.errors] == [
        f"spec.tasks[0].template.metadata.annotations[{DOMAIN}/queue]",
        "spec.queue",
    ]
