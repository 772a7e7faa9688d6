"""Requests of a pod to a batch scheduler, in the terms of each backend."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import USAGE, admit_pod, policy_with
from tests.support.builders import PodBuilder, make_pod, match_expressions
from webhook.backends.backend import BatchRequest
from webhook.backends.registry import BACKENDS
from webhook.policy.annotation_values import fraction
from webhook.policy.scheduler_settings import BackendName
from webhook.verdict import Patched, Unchanged

_TYPE = "maip.mxsf.io/workload-type"
_requests = st.builds(
    BatchRequest,
    queue=st.none() | st.just("q"),
    gang=st.none() | st.just("g"),
    gang_size=st.none() | st.just(4),
    gpu_fraction=st.none() | st.just("0.5"),
    preemptible=st.none() | st.booleans(),
)


def test_the_policy_can_name_every_backend_but_kueue() -> None:
    assert set(get_args(BackendName)) == set(BACKENDS) - {"kueue"}


@given(backend=st.sampled_from(sorted(BACKENDS)), request=_requests)
def test_a_backend_expresses_each_request_or_names_what_is_missing(backend: str, request: BatchRequest) -> None:
    expressed = BACKENDS[backend].express(request)

    paths = [field.path for field in expressed.fields]
    assert len(set(paths)) == len(paths)
    assert {attribute for attribute, _ in expressed.missing} <= set(BatchRequest.__slots__)
    # Kueue gets neither of the other two.
    if (
        request.queue
        or request.gang
        or ((request.gpu_fraction or request.preemptible is not None) and backend != "kueue")
    ):
        assert expressed.fields or expressed.missing


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

    assert isinstance(first, Patched)
    assert isinstance(admit_pod(first.pod, policy), Unchanged)


def _ignored(pod: PodBuilder, scheduler: str = "kai-scheduler", **training: Any) -> list[str]:
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"], **training}}})
    verdict = admit_pod(pod.annotate(_TYPE, "training").scheduler(scheduler).obj(), policy)
    assert isinstance(verdict, Patched)
    assert admit_pod(verdict.pod, policy).warnings == verdict.warnings
    return [each.partition(": ")[2] for each in verdict.warnings if "ignores preferred node affinity" in each]


def _preferring(key: str) -> PodBuilder:
    return make_pod().prefer_node(10, match_expressions((key, "In", ["nvme"])))


def test_kai_ignores_the_preferences_of_type_and_pod_alike() -> None:
    of_type, own = "the preference for nodes of training has no effect", "the pod's own has no effect"

    assert _ignored(make_pod()) == []
    assert _ignored(make_pod(), prefer={"training": 10}) == [of_type]
    assert _ignored(_preferring("disk")) == [own]
    assert _ignored(_preferring("disk"), prefer={"training": 10}) == [of_type, own]
    assert _ignored(_preferring(USAGE)) == [own]
    assert _ignored(_preferring("disk"), "volcano", prefer={"training": 10}) == []
