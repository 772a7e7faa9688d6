"""Requests of a pod to a batch scheduler, in the terms of each backend."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import USAGE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from webhook.admission.verdict import Patched, Unchanged
from webhook.backends.backend import BatchRequest
from webhook.backends.registry import BACKENDS
from webhook.policy.keys import fraction
from webhook.policy.spec.schedulers import BackendName

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


# What each backend writes for one attribute alone. None: a warning names it; empty: only the placement check reads it.
_QUEUE, _GANG, _SIZE = {"queue": "q"}, {"gang": "g"}, {"gang_size": 4}
_SHARE, _LOW, _KEPT = {"gpu_fraction": "0.5"}, {"preemptible": True}, {"preemptible": False}
_WRITTEN: dict[str, list[tuple[dict[str, Any], str | None]]] = {
    "default": [(_QUEUE, None), (_GANG, None), (_SIZE, ""), (_SHARE, None), (_LOW, None), (_KEPT, None)],
    "volcano": [
        (_QUEUE, "annotation scheduling.volcano.sh/queue-name=q"),
        (_GANG, "annotation scheduling.k8s.io/group-name=g"),
        (_SIZE, None),
        (_SHARE, None),
        (_LOW, "annotation volcano.sh/preemptable=true"),
        (_KEPT, "annotation volcano.sh/preemptable=false"),
    ],
    "kai": [
        (_QUEUE, "label kai.scheduler/queue=q"),
        (_GANG, "annotation pod-group-name=g"),
        (_SIZE, None),
        (_SHARE, "annotation gpu-fraction=0.5"),
        (_LOW, "label kai.scheduler/preemptibility=preemptible"),
        (_KEPT, "label kai.scheduler/preemptibility=non-preemptible"),
    ],
    "coscheduling": [
        (_QUEUE, None),
        (_GANG, "label scheduling.x-k8s.io/pod-group=g"),
        (_SIZE, None),
        (_SHARE, None),
        (_LOW, None),
        (_KEPT, None),
    ],
    "native": [
        (_QUEUE, None),
        (_GANG, "spec.schedulingGroup.podGroupName g"),
        (_SIZE, None),
        (_SHARE, None),
        (_LOW, None),
        (_KEPT, None),
    ],
    # The scheduler of the pod gets the last two, Kueue the others.
    "kueue": [(_QUEUE, "label kueue.x-k8s.io/queue-name=q"), (_GANG, None), (_SIZE, None)],
}


def test_the_table_has_every_backend() -> None:
    assert _WRITTEN.keys() == BACKENDS.keys()


@pytest.mark.parametrize(
    ("backend", "attribute", "written"),
    [(backend, attribute, written) for backend, rows in _WRITTEN.items() for attribute, written in rows],
    ids=str,
)
def test_each_attribute_alone_is_written_or_named_as_missing(
    backend: str, attribute: dict[str, Any], written: str | None
) -> None:
    expressed = BACKENDS[backend].express(BatchRequest(**attribute))

    assert [str(each) for each in expressed.fields] == ([written] if written else [])
    assert {name for name, _ in expressed.missing} == (set(attribute) if written is None else set())


@given(backend=st.sampled_from(sorted(set(BACKENDS) - {"kueue"})), request=_requests)
def test_attributes_are_expressed_each_by_itself(backend: str, request: BatchRequest) -> None:
    """The size of a gang is the exception: the PodGroup that a gang names has it."""
    parts = {each: getattr(request, each) for each in BatchRequest.__slots__}
    alone = [BACKENDS[backend].express(BatchRequest(**{name: value})) for name, value in parts.items()]

    expressed = BACKENDS[backend].express(request)

    assert {*expressed.fields} == {field for each in alone for field in each.fields}
    missing = {each for part in alone for each in part.missing if each[0] != "gang_size" or request.gang is None}
    assert {*expressed.missing} == missing


def test_kueue_needs_queue_name_and_size_of_a_gang_together() -> None:
    expressed = BACKENDS["kueue"].express(BatchRequest(queue="q", gang="g", gang_size=4))

    assert [str(each) for each in expressed.fields] == [
        "label kueue.x-k8s.io/queue-name=q",
        "label kueue.x-k8s.io/pod-group-name=g",
        "annotation kueue.x-k8s.io/pod-group-total-count=4",
    ]
    assert expressed.missing == []


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
