"""The group of the replicas of one owner: equal for all pods of a template, and of no other."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from webhook.mutation.replica_group import replica_group

KEY = "maip.mxsf.io/spread-group"
JOB = make_pod().label("batch.kubernetes.io/job-name", "a").label("job-name", "a").owner("Job", "a")
SET = make_pod().label("controller-revision-hash", "web-1").label("apps.kubernetes.io/pod-index", "0")


def group_of(pod: PodBuilder) -> str:
    return str(replica_group(pod.obj(), KEY))


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(JOB, "batch.kubernetes.io/job-name=a", id="Job"),
        pytest.param(JOB.label("jobset.sigs.k8s.io/jobset-name", "s"), "jobset.sigs.k8s.io/jobset-name=s", id="JobSet"),
        pytest.param(JOB.label(KEY, "mine"), f"{KEY}=mine", id="the user's own"),
        pytest.param(JOB.label(KEY, ""), "batch.kubernetes.io/job-name=a", id="an empty one"),
        pytest.param(JOB.label(KEY, "a b"), "batch.kubernetes.io/job-name=a", id="an invalid one"),
        pytest.param(make_pod().label("job-name", "old"), "job-name=old", id="an old Job"),
        pytest.param(make_pod().label("app", "web"), "None", id="bare pod"),
    ],
)
def test_labels_tell_the_replicas(pod: PodBuilder, wanted: str) -> None:
    assert group_of(pod) == wanted


@pytest.mark.parametrize(("pod", "wanted"), [(JOB.label(KEY, "mine"), "mine"), (JOB, "gang")])
def test_the_label_of_the_user_wins_over_the_name_of_the_gang(pod: PodBuilder, wanted: str) -> None:
    assert str(replica_group(pod.obj(), KEY, "gang")) == f"{KEY}={wanted}"


def test_pods_of_a_stateful_set_have_one_group_over_all_revisions() -> None:
    assert group_of(SET.owner("StatefulSet", "web")) == f"{KEY}=StatefulSet.web"
    first, other = SET.owner("StatefulSet", "web"), SET.label("controller-revision-hash", "web-2")

    assert group_of(first) == group_of(other.owner("StatefulSet", "web"))
    assert group_of(first) != group_of(SET.owner("StatefulSet", "api"))


def test_owner_with_a_long_name_is_told_by_a_hash() -> None:
    first, second = (group_of(make_pod().owner("StatefulSet", "w" * 60 + end)) for end in "ab")

    assert first != second
    assert len(first.partition("=")[2]) == 16


@pytest.mark.parametrize(
    "owner", [{"kind": "A", "name": "x"}, {"kind": "A", "name": "x", "controller": False}], ids=["absent", "false"]
)
def test_an_owner_that_is_no_controller_has_no_replicas(owner: dict[str, Any]) -> None:
    pod = make_pod().obj()
    pod["metadata"]["ownerReferences"] = [owner]

    assert replica_group(pod, KEY) is None
