"""The fields of a pod that profiles of kube-scheduler read."""

import pytest

from webhook.backends.backend import Backend, BatchRequest
from webhook.backends.kube_scheduler import Coscheduling, Default, Native


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        (Coscheduling, ("metadata", "labels", "scheduling.x-k8s.io/pod-group")),
        (Native, ("spec", "schedulingGroup", "podGroupName")),
    ],
)
def test_a_gang_is_the_group_where_the_profile_reads_it(backend: type[Backend], path: tuple[str, ...]) -> None:
    (field,) = backend.express(BatchRequest(gang="train")).fields

    assert (field.path, field.value) == (path, "train")


@pytest.mark.parametrize("backend", [Default, Coscheduling, Native])
def test_no_profile_has_queues(backend: type[Backend]) -> None:
    assert backend.express(BatchRequest(queue="team-a")) == ([], [("queue", "has no queues")])


def test_the_default_profile_starts_the_pods_of_a_gang_one_by_one() -> None:
    assert Default.express(BatchRequest(gang="train")) == ([], [("gang", "starts the pods of a gang one by one")])
