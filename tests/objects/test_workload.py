"""A workload object is advised when it is written: the verdict on its pods, and errors of its annotations."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import available, make_pv, make_storage_class
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised, ObjectVerdict, Verdict
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.names import HOSTNAME_LABEL
from webhook.objects.admission import admit_request
from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, assume
from webhook.policy.policy import Policy

KINDS = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind}.{each.group}")
DEPLOYMENT, STATEFUL_SET, JOB_SET, RAY = (
    next(each for each in SAMPLES if each.kind == kind)
    for kind in ("Deployment", "StatefulSet", "JobSet", "RayCluster")
)
CARD = "nvidia.com/gpu.product"
JOB = next(each for each in SAMPLES if (each.group, each.kind) == ("batch", "Job"))
DENIED = f'annotations[{TYPE}]: Unsupported value: "trainning"; supported values: "training", "inference"'


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


TWO_NODES = view(gpu_node("n1"), gpu_node("n2"))


def template(gpus: int = 4, **annotations: str) -> Object:
    pod = make_pod("").gpu(gpus).label("app", APP["app"]).annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod.template()


MISTYPED = make_pod("").label("app", APP["app"]).annotate(TYPE, "trainning").template()


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


@KINDS
def test_nothing_is_said_of_an_object_whose_pods_fit(sample: Sample) -> None:
    verdict = admitted(sample.object(template(), replicas=2), TWO_NODES)

    assert isinstance(verdict, Advised)
    assert verdict.warnings == ()
    assert (verdict.workload_type, verdict.outcome) == ("training", "Unchanged")
    assert verdict.placement is not None
    assert verdict.placement.verdict == "Feasible"


def test_the_policy_can_ask_for_the_verdict_of_objects_whose_pods_fit() -> None:
    policy = policy_with(workloadObjects={"report": "always"})

    assert warnings_of(admitted(DEPLOYMENT.object(template(), replicas=2), TWO_NODES, policy)) == (
        "placement check: 2 of 2 replicas fit now",
    )


@KINDS
def test_a_mistyped_annotation_is_denied_with_its_path_in_the_object(sample: Sample) -> None:
    verdict = admitted(sample.object(MISTYPED), TWO_NODES)

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.reason) == (422, "Invalid")
    assert verdict.denial.message == f"{sample.annotations.removesuffix('annotations')}{DENIED}"


@pytest.mark.parametrize("sample", [DEPLOYMENT, STATEFUL_SET, JOB_SET], ids=lambda each: each.kind)
def test_the_verdict_is_of_the_object_as_a_whole(sample: Sample) -> None:
    verdict = admitted(sample.object(template(), replicas=8), TWO_NODES)

    (first,) = warnings_of(verdict)
    assert first == (
        "placement check: Waiting: 4 of 8 replicas fit now; "
        "the next: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )
    assert isinstance(verdict, Advised)
    assert verdict.placement is not None
    assert verdict.placement.message == first.removeprefix("placement check: Waiting: ")


def test_a_single_pod_has_the_words_of_a_pod() -> None:
    first, *_ = warnings_of(admitted(DEPLOYMENT.object(template(16)), TWO_NODES))

    assert first == "placement check: Infeasible: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."


def waiting(*pods: PodBuilder) -> ClusterView:
    """Return the view of two nodes on which `pods` have room on n1."""
    assumed: AssumedPods[str] = AssumedPods(TWO_NODES.snapshot, {})
    for number, each in enumerate(pods):
        pod = WaitingPod.of(each.namespace("team-a").obj())
        on_n1 = replace(Placement.unknown(""), verdict="Feasible", node="n1")
        assume(f"waiting-{number}", pod, on_n1, assumed)
    return replace(TWO_NODES, assumed=assumed)


def test_pods_that_wait_take_their_places_first() -> None:
    verdict = admitted(DEPLOYMENT.object(template(4), 4), waiting(make_pod("waits").gpu(8)))

    assert warnings_of(verdict)[0] == (
        "placement check: Waiting: 2 of 4 replicas fit now; the next: 0/2 nodes are unavailable: "
        "2 Insufficient nvidia.com/gpu. It would fit, but 1 pod that waits before it needs the room."
    )
    assert warnings_of(admitted(DEPLOYMENT.object(template(4), 4), TWO_NODES)) == ()


def test_pods_of_an_object_do_not_wait_before_the_pods_of_its_update() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(5), 4)
    own = make_pod("own").gpu(8).label("app", APP["app"])

    beside_others = warnings_of(admitted(new, waiting(make_pod("waits").gpu(8)), old=old))
    beside_its_own = warnings_of(admitted(new, waiting(own), old=old))

    assert "1 pod that waits before it needs the room" in beside_others[0]
    assert "2 of 4 replicas fit now" in beside_its_own[0]
    assert "that waits before it" not in beside_its_own[0]


def test_roles_are_placed_together() -> None:
    spec = RAY.spec(template(8), 2)
    spec["headGroupSpec"]["template"] = template(8)

    first, *_ = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, TWO_NODES))

    assert first == (
        "placement check: Waiting: head 1 of 1, gpu 1 of 2 replicas fit now; "
        "the next gpu: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_roles_that_do_not_fit_one_that_never_fits_is_reported(is_first: bool) -> None:
    job = JOB_SET.object(template(8))
    (role,) = job["spec"]["replicatedJobs"]
    waits = [role | {"name": f"waits-{number}"} for number in range(3)]
    (never,) = JOB_SET.object(template(64))["spec"]["replicatedJobs"]
    job["spec"]["replicatedJobs"] = [never, *waits] if is_first else [*waits, never]

    first, *_ = warnings_of(admitted(job, TWO_NODES))

    assert first.startswith("placement check: Infeasible: ")


def test_many_roles_are_summed_up() -> None:
    job = JOB_SET.object(template(8))
    (role,) = job["spec"]["replicatedJobs"]
    job["spec"]["replicatedJobs"] = [role | {"name": f"role-{number}"} for number in range(6)]

    first, *_ = warnings_of(admitted(job, TWO_NODES))

    assert first.startswith("placement check: Waiting: 2 of 6 replicas of 6 roles fit now; the first role-2: 0/2 nodes")


def test_nothing_is_denied_for_its_placement() -> None:
    policy = policy_with(placementCheck={"mode": "deny"})

    first, second, *_ = warnings_of(admitted(DEPLOYMENT.object(template(16)), TWO_NODES, policy))

    assert first.startswith("placement check: Infeasible: ")
    assert second == "placement check: such pods are refused: placement-check is deny"


def test_the_annotation_of_a_template_switches_its_check_off() -> None:
    verdict = admitted(DEPLOYMENT.object(template(16, placement_check="off")), TWO_NODES)

    assert verdict == Advised("training")


@pytest.mark.parametrize(
    "cluster", [None, ClusterView(TWO_NODES.snapshot, TWO_NODES.scorer, "the view is too old"), view()]
)
def test_without_a_current_view_there_is_no_word(cluster: ClusterView | None) -> None:
    verdict = admitted(DEPLOYMENT.object(template(16)), cluster)

    assert isinstance(verdict, Advised)
    assert verdict.warnings == ()
    assert verdict.placement is not None
    assert verdict.placement.verdict == "Unknown"


def running(number: int) -> PodBuilder:
    return make_pod(f"web-{number}").namespace("team-a").gpu(4).label("app", APP["app"])


FULL = view(gpu_node("n1", running(1), running(2)), gpu_node("n2", running(3), running(4)))


def test_an_update_replaces_the_pods_of_the_object() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(4, bin_packing="false"), 4)

    assert warnings_of(admitted(new, FULL, old=old)) == ()
    assert warnings_of(admitted(new, FULL))[0].startswith(
        "placement check: Waiting: 0 of 4 replicas fit now; the first"
    )


def test_an_update_that_does_not_fit_says_what_is_assumed() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(8), 4)

    warnings = warnings_of(admitted(new, FULL, old=old))

    assert warnings[0].startswith("placement check: Waiting: 2 of 4 replicas fit now; the next: 0/2 nodes")
    assert warnings[-1] == "placement check: the 4 running pods of the object count as gone, as after a rolling update"


def rolling(content: Object, **fields: Any) -> Object:
    return content | {"spec": content["spec"] | {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}}


AVAILABLE = {"maxUnavailable": 0, "maxSurge": 1}
KEEPING = [
    pytest.param(3, {"maxUnavailable": "25%", "maxSurge": "25%"}, id="the default for up to three replicas"),
    pytest.param(4, AVAILABLE, id="none may be unavailable"),
    pytest.param(3, {}, id="fields that are not set"),
]
REPLACING = [
    pytest.param(4, {"maxUnavailable": "25%", "maxSurge": "25%"}, id="the default for four replicas"),
    pytest.param(3, {"maxUnavailable": 1, "maxSurge": 0}, id="one may be unavailable"),
    pytest.param(3, {"maxUnavailable": "1٠%", "maxSurge": "50%"}, id="a number that the API server rejects"),
    pytest.param(3, {"maxUnavailable": "0%", "maxSurge": "0%"}, id="neither: one is unavailable"),
]
CANNOT_START = (
    "placement check: Waiting: the rolling update cannot start beside the running pods: "
    "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
)
KEEPS_ALL = (
    "placement check: maxUnavailable is 0: a new pod starts before an old one ends; "
    "with spec.strategy.rollingUpdate.maxUnavailable: 1 an old one ends first"
)


@pytest.mark.parametrize(("replicas", "fields"), KEEPING)
def test_a_rolling_update_that_keeps_all_pods_needs_room_beside_them(replicas: int, fields: Object) -> None:
    old, new = DEPLOYMENT.object(template(4), replicas), DEPLOYMENT.object(template(4, bin_packing="false"), replicas)

    assert warnings_of(admitted(rolling(new, **fields), FULL, old=old)) == (CANNOT_START, KEEPS_ALL)
    half_full = view(gpu_node("n1", running(1), running(2)), gpu_node("n2", running(3)))
    assert warnings_of(admitted(rolling(new, **fields), half_full, old=old)) == ()


def test_a_rolling_update_that_keeps_all_pods_needs_room_beside_those_that_wait() -> None:
    old, new = DEPLOYMENT.object(template(8), 2), DEPLOYMENT.object(template(8, bin_packing="false"), 2)
    own = [make_pod(f"own-{number}").gpu(4).label("app", APP["app"]) for number in range(2)]
    n2_full = view(gpu_node("n1"), gpu_node("n2", running(1), running(2)))
    assumed = waiting(*own).assumed
    assert assumed is not None
    beside = replace(n2_full, assumed=assumed.on(n2_full.snapshot))

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), beside, old=old))

    assert first == f"{CANNOT_START} It would fit, but 2 pods that wait before it need the room."
    assert last == KEEPS_ALL


def test_a_rolling_update_of_pods_that_all_wait_needs_room_beside_them() -> None:
    old, new = DEPLOYMENT.object(template(8), 1), DEPLOYMENT.object(template(8, bin_packing="false"), 1)
    n2_full = view(gpu_node("n1"), gpu_node("n2", make_pod("other").namespace("team-b").gpu(8)))
    assumed = waiting(make_pod("own").gpu(4).label("app", APP["app"])).assumed
    assert assumed is not None
    beside = replace(n2_full, assumed=assumed.on(n2_full.snapshot))

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), beside, old=old))

    assert first.startswith(CANNOT_START)
    assert last == KEEPS_ALL


@pytest.mark.parametrize(("replicas", "fields"), REPLACING)
def test_a_rolling_update_that_may_remove_a_pod_first_can_start(replicas: int, fields: Object) -> None:
    old, new = DEPLOYMENT.object(template(4), replicas), DEPLOYMENT.object(template(4, bin_packing="false"), replicas)

    assert warnings_of(admitted(rolling(new, **fields), FULL, old=old)) == ()


def test_an_update_that_creates_the_pods_again_can_start() -> None:
    old, new = DEPLOYMENT.object(template(4), 1), DEPLOYMENT.object(template(4, bin_packing="false"), 1)
    recreated = new | {"spec": new["spec"] | {"strategy": {"type": "Recreate"}}}

    assert warnings_of(admitted(recreated, FULL, old=old)) == ()


def test_an_update_that_never_fits_names_both_reasons() -> None:
    old, new = DEPLOYMENT.object(template(4), 4), DEPLOYMENT.object(template(8), 4)

    first, *_, last = warnings_of(admitted(rolling(new, **AVAILABLE), FULL, old=old))

    assert first.startswith("placement check: Waiting: 2 of 4 replicas fit now; the next: ")
    assert last == KEEPS_ALL


def test_pods_of_an_operator_are_found_by_the_label_with_the_name_of_the_object() -> None:
    head = make_pod("head").namespace("team-a").gpu(8).label("ray.io/cluster", "web")
    others = make_pod("other").namespace("team-a").gpu(8).label("ray.io/cluster", "other")
    new = RAY.object(template(8))

    old = RAY.object(template(4))
    assert warnings_of(admitted(new, view(gpu_node("n1", head)), old=old)) == ()
    assert "Insufficient nvidia.com/gpu" in warnings_of(admitted(new, view(gpu_node("n1", others)), old=old))[0]


@pytest.mark.parametrize("sample", [DEPLOYMENT, JOB_SET, RAY], ids=lambda each: each.kind)
def test_an_update_that_leaves_the_pods_as_they_are_has_no_verdict(sample: Sample) -> None:
    old = sample.object(template(16))
    annotated = old | {"metadata": old["metadata"] | {"annotations": {TYPE: "training"}}}

    assert warnings_of(admitted(sample.object(template(12)), TWO_NODES, old=old)) != ()
    assert warnings_of(admitted(annotated, TWO_NODES, old=old)) == ()


def test_an_update_that_leaves_the_pods_as_they_are_names_no_absent_product_again() -> None:
    node = make_node_object("n1", labels={CARD: "NVIDIA-H20"}, capacity={"nvidia.com/gpu": 8})
    old = DEPLOYMENT.object(template(1, gpu_product="NVIDIA-H2O"))
    annotated = old | {"metadata": old["metadata"] | {"annotations": {TYPE: "training"}}}

    assert warnings_of(admitted(annotated, view([node]), old=old)) == ()


def test_an_error_that_the_stored_object_has_blocks_no_other_change() -> None:
    old = DEPLOYMENT.object(MISTYPED)
    changed = DEPLOYMENT.object(MISTYPED | {"spec": {"containers": [{"name": "main", "image": "other"}]}})

    assert warnings_of(admitted(changed, TWO_NODES, old=old)) == (f"spec.template.metadata.{DENIED}",)
    assert isinstance(admitted(changed, TWO_NODES, old=DEPLOYMENT.object(template())), Denied)


@pytest.mark.parametrize(
    ("spec", "is_denied"),
    [
        ({}, True),
        ({"invalidAnnotations": "warn"}, False),
        ({"workloadObjects": {"invalidAnnotations": "warn"}}, False),
        ({"workloadObjects": {"invalidAnnotations": "deny"}, "invalidAnnotations": "warn"}, True),
    ],
)
def test_the_policy_decides_whether_errors_deny(spec: Object, is_denied: bool) -> None:
    verdict = admitted(DEPLOYMENT.object(MISTYPED), TWO_NODES, policy_with(**spec))

    assert isinstance(verdict, Denied) is is_denied
    if not is_denied:
        assert warnings_of(verdict) == (f"spec.template.metadata.{DENIED}",)


def test_the_policy_can_switch_the_evaluation_off() -> None:
    policy = policy_with(workloadObjects={"enabled": False})

    assert admitted(DEPLOYMENT.object(MISTYPED), TWO_NODES, policy) == Bypassed(
        "the policy does not evaluate workload objects"
    )


def test_annotations_on_the_object_instead_of_its_template_are_a_warning() -> None:
    plain = DEPLOYMENT.object(make_pod("").label("app", "web").template())
    plain["metadata"]["annotations"] = {TYPE: "training", PRODUCT: "NVIDIA-H20", "team": "vision"}
    both = DEPLOYMENT.object(template())
    both["metadata"]["annotations"] = {TYPE: "training"}

    assert warnings_of(admitted(plain, TWO_NODES)) == (
        f"{TYPE}, {PRODUCT} have no effect on the Deployment itself: its pods read spec.template.metadata.annotations",
    )
    assert warnings_of(admitted(both, TWO_NODES)) == ()


def test_annotations_that_a_controller_copies_to_the_pods_are_where_they_belong() -> None:
    sample = next(each for each in SAMPLES if each.kind == "Notebook")
    notebook = sample.object(make_pod("").gpu(1).template())
    notebook["metadata"]["annotations"] = {TYPE: "training"}

    verdict = admitted(notebook, TWO_NODES)
    assert warnings_of(verdict) == ()
    assert isinstance(verdict, Advised)
    assert verdict.workload_type == "training"


def test_the_pods_of_a_daemon_set_are_left_alone() -> None:
    daemon_set = DEPLOYMENT.object(template()) | {"kind": "DaemonSet"}
    plain = DEPLOYMENT.object(make_pod("").label("app", "web").template()) | {"kind": "DaemonSet"}

    assert warnings_of(admitted(daemon_set, TWO_NODES)) == (
        f"the pods of a DaemonSet are left alone: {TYPE} has no effect",
    )
    assert warnings_of(admitted(plain, TWO_NODES)) == ()


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (make_pod("").gpu(16), "no workload type"),
        (make_pod("").gpu(16).annotate(TYPE, "training").annotate(f"{DOMAIN}/inject", "disabled"), "inject: disabled"),
        (make_pod("").gpu(16).annotate(TYPE, "training").node_name("n1"), "nodeName"),
    ],
)
def test_pods_that_are_left_alone_give_no_advice(pod: PodBuilder, reason: str) -> None:
    verdict = admitted(DEPLOYMENT.object(pod.template()), TWO_NODES)

    assert isinstance(verdict, Bypassed)
    assert verdict.warnings == ()
    assert reason in verdict.reason


def test_defaults_of_the_namespace_apply() -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team-a", "annotations": {TYPE: "training"}},
    }
    cluster = view(gpu_node("n1"), [namespace])

    first, *_ = warnings_of(admitted(DEPLOYMENT.object(make_pod("").gpu(16).template()), cluster))

    assert first == "placement check: Infeasible: 0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu."


def test_an_object_with_a_controller_is_left_alone() -> None:
    replica_set = DEPLOYMENT.object(MISTYPED) | {"kind": "ReplicaSet"}
    replica_set["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web", "controller": True}]

    assert isinstance(admitted(replica_set, TWO_NODES), Bypassed)


def test_a_job_that_a_user_creates_from_a_cron_job_is_evaluated() -> None:
    job = JOB.object(MISTYPED)
    job["metadata"]["ownerReferences"] = [{"kind": "CronJob", "name": "web", "controller": True}]
    by_hand = job | {"metadata": job["metadata"] | {"annotations": {"cronjob.kubernetes.io/instantiate": "manual"}}}

    assert isinstance(admitted(job, TWO_NODES), Bypassed)
    assert isinstance(admitted(by_hand, TWO_NODES), Denied)


def test_pods_that_come_from_elsewhere_have_no_verdict() -> None:
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "web", "annotations": {TYPE: "training"}},
        "spec": {"runtimeRef": {"name": "torch"}},
    }
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "web", "annotations": {TYPE: "training"}},
        "spec": {
            "predictor": {"model": {"modelFormat": {"name": "vllm"}, "resources": {"limits": {"nvidia.com/gpu": 16}}}}
        },
    }

    (warning,) = warnings_of(admitted(train_job, TWO_NODES))
    assert warning.startswith(
        f"{TYPE} has no effect on the TrainJob itself: the pods of a TrainJob come from the runtime"
    )
    verdict = admitted(service, TWO_NODES)
    assert warnings_of(verdict) == ()
    assert isinstance(verdict, Advised)
    assert verdict.placement is not None
    assert verdict.placement.verdict == "Unknown"


@pytest.mark.parametrize(
    "spec", [None, 7, {}, {"template": 7}, {"template": {}}, {"template": {"spec": {}}, "replicas": "x"}]
)
def test_an_object_that_cannot_be_read_is_allowed(spec: Any) -> None:
    assert isinstance(admitted(DEPLOYMENT.object(template()) | {"spec": spec}, TWO_NODES), Bypassed)


def stateful_set(replicas: int) -> Object:
    made = STATEFUL_SET.object(template(1), replicas=replicas)
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "local"}}]
    return made


def test_claims_of_a_stateful_set_are_created_with_its_pods() -> None:
    hosts = [{HOSTNAME_LABEL: [name]} for name in ("n1", "n2")]
    storage = [
        make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        *(available(make_pv(f"disk-{index}", "local", on=host)) for index, host in enumerate(hosts)),
    ]
    cluster = view(gpu_node("n1"), gpu_node("n2"), storage)

    assert warnings_of(admitted(stateful_set(2), cluster)) == ()
    first, *_ = warnings_of(admitted(stateful_set(3), cluster))
    assert first == (
        "placement check: Waiting: 2 of 3 replicas fit now; "
        "the next: 0/2 nodes are unavailable: 2 node(s) didn't find available persistent volumes to bind."
    )


def test_without_a_view_of_claims_only_other_shortages_are_certain() -> None:
    scarce = STATEFUL_SET.object(template(16), replicas=2)
    scarce["spec"]["volumeClaimTemplates"] = stateful_set(1)["spec"]["volumeClaimTemplates"]

    assert warnings_of(admitted(stateful_set(2), TWO_NODES)) == ()
    assert "Insufficient nvidia.com/gpu" in warnings_of(admitted(scarce, TWO_NODES))[0]


def test_a_product_that_no_node_has_is_a_warning_once() -> None:
    node = make_node_object("n1", labels={"nvidia.com/gpu.product": "NVIDIA-H20"}, capacity={"nvidia.com/gpu": 8})
    spec = RAY.spec(template(1, gpu_product="NVIDIA-H2O"), 1)
    spec["headGroupSpec"]["template"] = template(1, gpu_product="NVIDIA-H2O")

    warnings = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, view([node])))

    assert len([each for each in warnings if "did you mean NVIDIA-H20?" in each]) == 1


def h20_node(name: str, *running: PodBuilder) -> list[Object]:
    node = make_node_object(
        name,
        labels={USAGE: "training", CARD: "NVIDIA-H20", HOSTNAME_LABEL: name},
        taints=[f"{USAGE}=training:NoSchedule", f"{CARD}=NVIDIA-H20:NoSchedule"],
        capacity={"nvidia.com/gpu": 8},
    )
    return [node, *(pod.node_name(name).obj() for pod in running)]


def suggestions_for(content: Object, *nodes: list[Object]) -> list[str]:
    prefix = "placement check: suggestion: "
    return [text.removeprefix(prefix) for text in warnings_of(admitted(content, view(*nodes))) if prefix in text]


SET_H20 = f"set {PRODUCT}: NVIDIA-H20 instead of NVIDIA-H2O: 2 nodes would fit"
ASK_FOR_6 = "ask for 6 nvidia.com/gpu instead of 8: 2 pods would fit"


@pytest.mark.parametrize(
    ("second", "suggestions"),
    [
        pytest.param(h20_node("n2"), [SET_H20], id="room for both replicas"),
        pytest.param(h20_node("n2", make_pod("other").gpu(1)), [], id="room for one of two"),
    ],
)
def test_a_suggested_annotation_makes_all_replicas_fit(second: list[Object], suggestions: list[str]) -> None:
    content = DEPLOYMENT.object(template(8, gpu_product="NVIDIA-H2O"), 2)

    assert suggestions_for(content, h20_node("n1"), second) == suggestions


@pytest.mark.parametrize(("taken", "suggestions"), [(2, [ASK_FOR_6]), (3, [])])
def test_a_smaller_request_is_suggested_only_if_all_replicas_fit_with_it(taken: int, suggestions: list[str]) -> None:
    nodes = [gpu_node("n1", make_pod("a").gpu(2)), gpu_node("n2", make_pod("b").gpu(taken))]

    assert suggestions_for(DEPLOYMENT.object(template(8), 2), *nodes) == suggestions


TINY = make_pod("tiny").requests(cpu=1)
NONE_LEFT, ONE_LEFT = make_pod("full").gpu(8), make_pod("mostly-full").gpu(7)


@pytest.mark.parametrize(
    ("nodes", "replicas", "suggestions"),
    [
        pytest.param((NONE_LEFT, ONE_LEFT), 2, ["n1 fits once 1 nvidia.com/gpu is freed"], id="the last replica"),
        pytest.param((NONE_LEFT, ONE_LEFT), 3, [], id="two replicas are left"),
        pytest.param((ONE_LEFT, NONE_LEFT), 2, ["n1 fits once 1 nvidia.com/gpu is freed"], id="beside another replica"),
        pytest.param(
            (make_pod("tiny").requests(cpu=1), NONE_LEFT),
            9,
            ["n2 fits once 1 nvidia.com/gpu is freed"],
            id="other pods",
        ),
        pytest.param((make_pod("tiny").requests(cpu=1),), 9, [], id="held by the other replicas"),
    ],
)
def test_room_is_to_be_freed_only_for_the_last_replica_and_never_that_of_another(
    nodes: tuple[PodBuilder, ...], replicas: int, suggestions: list[str]
) -> None:
    cluster = [gpu_node(f"n{number}", running) for number, running in enumerate(nodes, 1)]

    assert suggestions_for(DEPLOYMENT.object(template(1), replicas), *cluster) == suggestions


@pytest.mark.parametrize(("cards", "is_suggested"), [(4, True), (5, False)])
def test_a_suggestion_for_one_role_leaves_room_for_the_roles_after_it(cards: int, *, is_suggested: bool) -> None:
    content = RAY.object(template(4, gpu_product="NVIDIA-H2O"), 1)
    groups = content["spec"]["workerGroupSpecs"]
    groups.append({**groups[0], "groupName": "more", "template": template(cards)})

    assert (SET_H20.replace("2 nodes", "1 node") in suggestions_for(content, h20_node("n1"))) is is_suggested


def test_long_names_of_roles_leave_room_for_the_reason() -> None:
    spec = RAY.spec(template(8), 3)
    spec["workerGroupSpecs"][0]["groupName"] = "g" * 200

    first, *_ = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, TWO_NODES))

    assert len(first) < 256
    assert first.endswith("0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu.")


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        (8, "no pods are created while spec.paused is set; 4 of 8 replicas fit now; the next: "),
        (1, "no pods are created while spec.paused is set; "),
    ],
)
def test_the_verdict_on_a_suspended_object_is_for_the_pods_that_it_will_create(replicas: int, said: str) -> None:
    gpus = 4 if replicas > 1 else 16
    content = DEPLOYMENT.object(template(gpus), replicas)
    content["spec"]["paused"] = True

    first = warnings_of(admitted(content, TWO_NODES))[0]

    verdict = "Waiting" if replicas > 1 else "Infeasible"
    assert first == (f"placement check: {verdict}: {said}0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu.")


def test_the_record_of_a_suspended_object_whose_pods_would_fit_says_that_there_are_none_now() -> None:
    content = DEPLOYMENT.object(template(), 2)
    content["spec"]["paused"] = True

    verdict = admitted(content, TWO_NODES)

    assert isinstance(verdict, Advised)
    assert verdict.placement is not None
    assert verdict.placement.message == "no pods are created while spec.paused is set; 2 of 2 replicas fit now"


def test_a_suspended_group_of_a_ray_cluster_is_not_placed() -> None:
    content = RAY.object(template(gpus=16), replicas=8)
    content["spec"]["workerGroupSpecs"][0]["suspend"] = True

    assert warnings_of(admitted(content, TWO_NODES)) == ()


@pytest.mark.parametrize("sample", [DEPLOYMENT, STATEFUL_SET, JOB_SET], ids=lambda each: each.kind)
def test_the_cause_stands_before_the_verdict_and_this_before_the_suggestion(sample: Sample) -> None:
    content = sample.object(template(4, gpu_product="NVIDIA-H2O", gpu_cuont="4"), 1)

    found = [text.partition(": ")[0] for text in warnings_of(admitted(content, view(h20_node("n1"))))]

    assert [each for each in found if not each.startswith("annotation ")] == ["gpu-product"] + 2 * ["placement check"]
    assert found[0].startswith("annotation ")


@pytest.mark.parametrize(
    ("pod", "warning"),
    [
        pytest.param(
            make_pod("").label(TYPE, "training"),
            f"labels that only have an effect as annotations: {TYPE}",
            id="a label",
        ),
        pytest.param(
            make_pod("").annotate("maip.mxsf.oi/workload-type", "training"),
            f"annotation maip.mxsf.oi/workload-type is not known and does nothing; did you mean {TYPE}?",
            id="a domain an edit away",
        ),
    ],
)
def test_keys_that_do_nothing_are_pointed_out_when_the_object_is_applied(pod: PodBuilder, warning: str) -> None:
    verdict = admitted(DEPLOYMENT.object(pod.label("app", APP["app"]).template()), TWO_NODES)

    assert verdict == Bypassed("no workload type", (warning,))


def test_an_object_whose_pods_lack_the_required_type_is_denied() -> None:
    content = DEPLOYMENT.object(make_pod("").gpu(1).label("app", APP["app"]).template())

    verdict = admitted(content, TWO_NODES, policy_with(requireType="deny"))

    assert isinstance(verdict, Denied)
    assert verdict.denial.message.startswith(f"spec.template.metadata.annotations[{TYPE}]: Required value: ")
