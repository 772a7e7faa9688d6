"""A workload object is advised when it is written: the verdict on its pods, and errors of its annotations."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.objects.advised import (
    DEPLOYMENT,
    JOB_SET,
    ONE_SCHEDULER,
    RAY,
    STATEFUL_SET,
    TWO_NODES,
    admitted,
    gpu_node,
    template,
    view,
    warnings_of,
)
from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised
from webhook.documents.field import FieldError, forbidden, invalid
from webhook.objects import workload
from webhook.objects.workload import _denied

KINDS = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind}.{each.group}")
CARD = "nvidia.com/gpu.product"
JOB = next(each for each in SAMPLES if (each.group, each.kind) == ("batch", "Job"))
DENIED = f'annotations[{TYPE}]: Unsupported value: "trainning"; supported values: "inference", "training"'
MISTYPED = make_pod("").label("app", APP["app"]).annotate(TYPE, "trainning").template()


@KINDS
def test_nothing_is_said_of_an_object_whose_pods_fit(sample: Sample) -> None:
    verdict = admitted(sample.object(template(), replicas=2), TWO_NODES, ONE_SCHEDULER)

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


@pytest.mark.parametrize("sample", [DEPLOYMENT, JOB_SET, RAY], ids=lambda each: each.kind)
def test_an_update_that_leaves_the_pods_as_they_are_has_no_verdict(sample: Sample) -> None:
    old = sample.object(template(16))
    annotated = old | {"metadata": old["metadata"] | {"annotations": {TYPE: "training"}}}

    assert warnings_of(admitted(sample.object(template(12)), TWO_NODES, old=old)) != ()
    assert warnings_of(admitted(annotated, TWO_NODES, ONE_SCHEDULER, old=old)) == ()


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


def test_a_product_that_no_node_has_is_a_warning_once() -> None:
    node = make_node_object("n1", labels={"nvidia.com/gpu.product": "NVIDIA-H20"}, capacity={"nvidia.com/gpu": 8})
    spec = RAY.spec(template(1, gpu_product="NVIDIA-H2O"), 1)
    spec["headGroupSpec"]["template"] = template(1, gpu_product="NVIDIA-H2O")

    warnings = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, view([node])))

    assert len([each for each in warnings if "did you mean NVIDIA-H20?" in each]) == 1


TINY = make_pod("tiny").requests(cpu=1)


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

    assert warnings_of(admitted(content, TWO_NODES, ONE_SCHEDULER)) == ()


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


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([forbidden("a", "x")], 403),
        ([forbidden("a", "x"), invalid("b", 1, "y")], 422),
        ([invalid("b", 1, "y"), forbidden("a", "x")], 422),
        ([invalid("b", 1, "y")], 422),
    ],
)
def test_a_denial_is_invalid_if_any_of_its_errors_is(errors: list[FieldError], code: int) -> None:
    findings: Any = SimpleNamespace(workload_type="training", warnings=["w", "v", "w"])
    found = _denied(errors, findings)

    assert (found.denial.code, found.denial.reason) == (code, {403: "Forbidden", 422: "Invalid"}[code])
    assert found.denial.message == ";\n".join(map(str, errors))
    assert (found.workload_type, found.warnings, found.errors) == ("training", ("w", "v"), tuple(errors))


def test_new_error_is_denied_beside_one_that_the_stored_object_has() -> None:
    old = DEPLOYMENT.object(template(gpu_count="many"))
    new = DEPLOYMENT.object(template(gpu_count="many", gpu_memory="much"))

    verdict = admitted(new, TWO_NODES, old=old)

    assert isinstance(verdict, Denied)
    assert "gpu-memory" in verdict.denial.message
    assert "gpu-count" not in verdict.denial.message


def job_set(*templates: Object) -> Object:
    """Return a JobSet with a job for each of the templates."""
    content = JOB_SET.object(template())
    (job,) = content["spec"]["replicatedJobs"]
    jobs = []
    for number, each in enumerate(templates):
        (made,) = JOB_SET.object(each)["spec"]["replicatedJobs"]
        jobs.append(job | made | {"name": f"job-{number}", "replicas": 1})
    content["spec"]["replicatedJobs"] = jobs
    return content


@pytest.mark.parametrize("types", [("training", "inference"), ("inference", "training"), ("", "inference")])
def test_an_object_is_of_the_type_of_its_first_template_that_has_one(types: tuple[str, str]) -> None:
    pods = [make_pod("").label("app", APP["app"]).requests(cpu=1) for _ in types]
    typed = [pod.annotate(TYPE, each) if each else pod for pod, each in zip(pods, types, strict=True)]

    verdict = admitted(job_set(*(each.template() for each in typed)))

    assert isinstance(verdict, Advised)
    assert verdict.workload_type == next(filter(None, types))


@pytest.mark.parametrize(("templates", "is_cut"), [(1, False), (2, False), (3, True), (5, True)])
def test_templates_up_to_the_limit_are_evaluated(
    monkeypatch: pytest.MonkeyPatch, templates: int, *, is_cut: bool
) -> None:
    """The errors of the templates show which of them were evaluated."""
    monkeypatch.setattr(workload, "MOST_TEMPLATES", 2)
    content = job_set(*[template(gpu_count="many")] * templates)

    warnings = warnings_of(admitted(content, None, policy_with(invalidAnnotations="warn")))

    assert [number for number in range(templates) if f"replicatedJobs[{number}]" in str(warnings)] == [0, 1][:templates]
    assert any("only the first 2 pod templates" in each for each in warnings) is is_cut


@pytest.mark.parametrize(("most", "wanted"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)])
def test_errors_of_all_templates_are_reported_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch, most: int, wanted: int
) -> None:
    monkeypatch.setattr(workload, "MOST_ERRORS", most)
    content = job_set(*[template(gpu_count="many", gpu_memory="much")] * 2)

    verdict = admitted(content)

    assert isinstance(verdict, Denied)
    assert len(verdict.errors) == wanted
    paths = [f"replicatedJobs[{number}]" for number in (0, 0, 1, 1)][:wanted]
    assert all(path in error.path for path, error in zip(paths, verdict.errors, strict=True))


@pytest.mark.parametrize("own", ["deny", "warn", None])
@pytest.mark.parametrize("general", ["deny", "warn"])
def test_the_setting_for_objects_wins_over_that_for_pods_on_errors_of_templates(own: str | None, general: str) -> None:
    objects = {} if own is None else {"invalidAnnotations": own}
    policy = policy_with(workloadObjects=objects, invalidAnnotations=general)

    verdict = admitted(DEPLOYMENT.object(template(gpu_count="many")), None, policy)

    assert isinstance(verdict, Denied) is ((own or general) == "deny")
