"""Requests of a pod to a batch scheduler, in the terms of each backend."""

from typing import Any, get_args

import pytest

from tests.support.admission import admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from webhook.admission.injection import Injection, inject
from webhook.admission.pod_content import PodContent
from webhook.mutation.workload.workload import read_workload
from webhook.policy.keys import fraction
from webhook.policy.spec.schedulers import BackendName

_TYPE = "maip.mxsf.io/workload-type"


@pytest.mark.parametrize(("text", "shortest"), [("0.5", "0.5"), (".25", "0.25"), ("0.500", "0.5"), ("0.05", "0.05")])
def test_a_share_has_one_form(text: str, shortest: str) -> None:
    assert fraction(text) == shortest


@pytest.mark.parametrize(
    "text", ["0", "1", "1.0", "0.0", "0.", ".", "-0.5", "0,5", "5e-1", "0.12345", "00.5", "0..5", "٠.٥"]
)
def test_anything_else_is_no_share(text: str) -> None:
    with pytest.raises(ValueError, match="decimal above 0 and below 1"):
        fraction(text)


@pytest.mark.parametrize("backend", get_args(BackendName))
@pytest.mark.parametrize("queueing", ["scheduler", "kueue"])
def test_a_second_admission_changes_nothing(backend: str, queueing: str) -> None:
    policy = policy_with(schedulers={"volcano": {"backend": backend}}, queueing=queueing)
    pod = make_pod().annotate(_TYPE, "training")
    for key, value in {
        "queue": "q",
        "gang": "g",
        "gang-size": "4",
        "gpu-fraction": "0.5",
        "preemptible": "true",
    }.items():
        pod = pod.annotate(f"maip.mxsf.io/{key}", value)

    first = admit_pod(pod.obj(), policy)

    assert first.outcome == "Patched"
    assert admit_pod(first.pod, policy).outcome == "Unchanged"


KEY = "maip.mxsf.io/"
REQUESTS = {"queue": "q", "gang": "g", "gang-size": "4", "gpu-fraction": "0.5", "preemptible": "true"}
# The requests that the scheduler of each backend cannot express, and the fields of those that it can.
EXPRESSED: dict[str, tuple[set[str], set[str]]] = {
    "default": ({*REQUESTS} - {"gang-size"}, set()),
    "volcano": (
        {"gpu-fraction"},
        {"scheduling.volcano.sh/queue-name", "scheduling.k8s.io/group-name", "volcano.sh/preemptable"},
    ),
}


def batched(pod: PodBuilder, backend: str, defaults: dict[str, str] | None = None, **spec: Any) -> Injection:
    policy = policy_with(schedulers={"volcano": {"backend": backend}}, **spec)
    found = inject(PodContent(make_request(pod.obj()), defaults or {}), policy)
    assert isinstance(found, Injection)
    return found


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("backend", EXPRESSED)
def test_each_request_is_expressed_or_its_own_annotation_is_warned_of(backend: str, *, is_own: bool) -> None:
    lacks, fields = EXPRESSED[backend]
    requests = {f"{KEY}{key}": value for key, value in REQUESTS.items()}
    pod = make_pod().annotate(_TYPE, "training")
    for key, value in requests.items() if is_own else ():
        pod = pod.annotate(key, value)
    # Whole cards and a share contradict each other, and the defaults apply to pods with cards.
    found = batched(pod if is_own else pod.gpu(1), backend, {} if is_own else requests)

    warned = {each.partition(" has no effect: ")[0] for each in found.warnings if " has no effect: " in each}
    assert warned == ({f"{KEY}{each}" for each in lacks} if is_own else set())
    (outcome,) = [each for each in found.rules if each.name == "BatchScheduler"]
    assert {each.removeprefix("annotation ").partition("=")[0] for each in outcome.edits} == fields


@pytest.mark.parametrize("is_own", [True, False])
def test_a_share_and_whole_cards_contradict_each_other(*, is_own: bool) -> None:
    pod = make_pod().annotate(_TYPE, "training").limits(**{"amd.com/gpu": 1, "nvidia.com/gpu": 1})
    pod = pod.annotate(f"{KEY}gpu-fraction", "0.5") if is_own else pod
    reading = read_workload(pod.obj(), "lab", {} if is_own else {f"{KEY}gpu-fraction": "0.5"}, policy_with())

    detail = "the pod requests whole cards of nvidia: remove that request or this annotation"
    assert [each.detail for each in reading.errors] == ([detail] if is_own else [])
    assert any(detail in each for each in reading.warnings) is not is_own


@pytest.mark.parametrize("backend", ["volcano", "default"])
@pytest.mark.parametrize("is_of_job", [False, True])
@pytest.mark.parametrize("asked", [{"queue": "q"}, {"gang-size": "4"}, {"gang-size": "4", "gang": "g"}])
def test_a_volcano_job_has_its_queue_and_its_pod_group_the_size(
    asked: dict[str, str], backend: str, *, is_of_job: bool
) -> None:
    pod = make_pod().annotate(_TYPE, "training")
    pod = pod.label("volcano.sh/job-name", "j") if is_of_job else pod
    for key, value in asked.items():
        pod = pod.annotate(f"{KEY}{key}", value)
    warned = [each for each in batched(pod, backend).warnings if "no effect" in each]

    is_in_job = is_of_job and backend == "volcano"
    assert (f"{KEY}queue has no effect: the queue of a Volcano Job is its spec.queue" in warned) is (
        is_in_job and "queue" in asked
    )
    by_default = batched(
        make_pod().annotate(_TYPE, "training").label("volcano.sh/job-name", "j").gpu(1), backend, asked
    )
    assert not any("of a Volcano Job" in each for each in by_default.warnings)
    # A PodGroup that is named has the size, as that of a Job has.
    lacks_size = backend == "volcano" and [*asked] == ["gang-size"] and not is_of_job
    assert any(each.startswith(f"{KEY}gang-size has no effect") for each in warned) is lacks_size


ZONE = {"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}}
USAGE_TERM = match_expressions(("maip.mxsf.io/node.usage", "In", ["training"]))


@pytest.mark.parametrize("backend", ["kai", "default"])
@pytest.mark.parametrize(
    ("of_type", "pod", "ignored"),
    [
        ({}, make_pod(), []),
        ({"prefer": {"b": 1, "a": 2}}, make_pod(), ["the preference for nodes of a, b has no effect"]),
        ({}, make_pod().prefer_node(1, USAGE_TERM), ["the pod's own has no effect"]),
        (
            {"prefer": {"a": 2}},
            make_pod().prefer_node(1, USAGE_TERM),
            ["the preference for nodes of a has no effect"],
        ),
        (
            {"prefer": {"a": 2}},
            make_pod().prefer_node(1, match_expressions(("zone", "Exists", []))),
            ["the preference for nodes of a has no effect", "the pod's own has no effect"],
        ),
        ({}, make_pod().prefer_node(1, {"matchFields": [{"key": "metadata.name"}]}), ["the pod's own has no effect"]),
        ({}, make_pod().prefer_node(1, {}), []),
        (
            {},
            make_pod().spec(topologySpreadConstraints=[{**ZONE, "whenUnsatisfiable": "DoNotSchedule"}]),
            ["the pods can run in one domain"],
        ),
        ({}, make_pod().spec(topologySpreadConstraints=[{**ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]), []),
        ({"spread": ("topologySpread", "required")}, make_pod(), ["the pods can run in one domain"]),
        ({"spread": ("topologySpread", "preferred")}, make_pod(), []),
        ({"spread": ("antiAffinity", "required")}, make_pod(), []),
    ],
)
def test_what_the_scheduler_ignores_is_warned_of(
    of_type: dict[str, Any], pod: PodBuilder, ignored: list[str], backend: str
) -> None:
    usage: dict[str, Any] = {"allow": ["a", "b"], "prefer": of_type.get("prefer", {})}
    form, mode = of_type.get("spread", ("", ""))
    spread = {"spread": {"topology": "zone", "form": form, "mode": mode}} if form else {}
    types = {"training": {"nodeUsage": usage, "schedulerName": "volcano", **spread}}
    pod = pod.label("job-name", "j").annotate(_TYPE, "training")
    found = batched(pod, backend, workloadTypes=types)

    texts = [each.rpartition(": ")[2] for each in found.warnings if each.startswith("scheduler volcano ignores ")]
    assert texts == (ignored if backend == "kai" else [])


@pytest.mark.parametrize(
    ("own", "of_type", "wanted"),
    [
        ("", None, "default-scheduler"),
        ("", "volcano", "volcano"),
        ("kai-scheduler", "volcano", "kai-scheduler"),
        ("kai-scheduler", None, "kai-scheduler"),
        ("default-scheduler", "volcano", "volcano"),
    ],
)
def test_scheduler_of_the_pod_reads_the_requests_before_that_of_its_type(
    own: str, of_type: str | None, wanted: str
) -> None:
    pod = make_pod().annotate(_TYPE, "training").gpu(1)
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": of_type}})

    reading = read_workload((pod.scheduler(own) if own else pod).obj(), "default", {}, policy)

    assert reading.workload is not None
    assert reading.workload.batch.scheduler == wanted
