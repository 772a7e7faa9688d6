"""The table of the backends."""

from typing import get_args

import pytest

from tests.backends.requests import WRITTEN
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.backends.backend import BatchNames
from webhook.backends.kai import GROUP, QUEUE, Kai
from webhook.backends.registry import BACKENDS, api_groups_of, batch_names_of, starts_whole
from webhook.backends.volcano import Volcano
from webhook.kube.names import VOLCANO_GROUP, VOLCANO_TIER, VOLCANO_TOPOLOGY
from webhook.policy.spec.schedulers import BackendName, SchedulerSettings


def test_the_policy_can_name_every_backend_but_kueue() -> None:
    assert set(get_args(BackendName)) == set(BACKENDS) - {"kueue"}


def test_the_table_has_every_backend() -> None:
    assert WRITTEN.keys() == BACKENDS.keys()


def test_the_backend_of_the_policy_decides_which_api_groups_show_a_scheduler() -> None:
    """Without a backend, the groups of a known scheduler count."""
    name = "koord-scheduler"
    assert api_groups_of({}, name) == ("scheduling.koordinator.sh",)
    assert api_groups_of({name: SchedulerSettings(backend="volcano")}, name) == Volcano.api_groups


@pytest.mark.parametrize(("pod", "level"), [(make_pod(), "rack"), (make_pod().owner("Job", "train"), "")])
def test_kai_reads_the_domain_of_a_pod_with_an_owner_from_the_owner(pod: PodBuilder, level: str) -> None:
    (names,) = batch_names_of(pod.annotate(Kai.required_level_at, "rack").label(QUEUE, "q").obj(), Kai)

    assert names.required_level == level


@pytest.mark.parametrize(("group", "is_read"), [("", True), ("train", False)])
def test_volcano_reads_the_domain_of_a_pod_that_names_a_group_from_the_group(group: str, is_read: bool) -> None:
    pod = make_pod().annotate(VOLCANO_TOPOLOGY, "hard").annotate(VOLCANO_TIER, "1")

    (names,) = batch_names_of((pod.annotate(VOLCANO_GROUP, group) if group else pod).obj(), Volcano)

    assert (names.group, names.network is not None) == (group, is_read)


@pytest.mark.parametrize(
    ("backend", "topology", "is_whole"), [("kai", "", True), ("kueue", "", False), ("kueue", "rack", True)]
)
def test_kueue_starts_a_gang_whole_only_where_it_looks_at_nodes(backend: str, topology: str, is_whole: bool) -> None:
    pod = make_pod().label("kueue.x-k8s.io/queue-name", "q")
    if topology:
        pod = pod.annotate("kueue.x-k8s.io/podset-required-topology", topology)

    assert starts_whole(pod.obj(), [BatchNames(backend, "q", "", has_owner=False, starts_whole=True)]) is is_whole


@pytest.mark.parametrize(
    ("group", "is_owned", "is_replaced"),
    [("train", True, True), ("train", False, False), ("pg-train", True, False), ("", True, False), ("", False, False)],
)
def test_kai_replaces_the_group_of_a_pod_with_an_owner_unless_it_has_made_it(
    group: str, is_owned: bool, is_replaced: bool
) -> None:
    pod = make_pod().label(QUEUE, "q")
    pod = pod.annotate(GROUP, group) if group else pod

    (names,) = batch_names_of((pod.owner("Job", "train") if is_owned else pod).obj(), Kai)

    assert (names.group, names.has_owner, names.is_replaced) == (group, is_owned, is_replaced)
    # A group that is replaced holds no pods.
    assert names.starts_whole is (bool(group) and not is_replaced)
