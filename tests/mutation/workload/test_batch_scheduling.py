"""Requests of a pod to a batch scheduler, in the terms of each backend."""

from typing import get_args

import pytest

from tests.support.admission import admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.verdict import Patched, Unchanged
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

    assert isinstance(first, Patched)
    assert isinstance(admit_pod(first.pod, policy), Unchanged)
