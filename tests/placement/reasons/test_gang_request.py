"""The gang that a pod asks for, and what its group says."""

import pytest

from tests.placement.reasons.batch_pods import Object, warnings_of
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import (
    cluster_queue,
    kai_group,
    local_queue,
    pod_group,
    resource_flavor,
    volcano_group,
)
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.views import made_anew
from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest
from webhook.backends.registry import backend_of, batch_names_of
from webhook.placement.reasons.gang_request import grouped

GPU = "nvidia.com/gpu"
_KAI = make_pod().namespace("default").scheduler("kai-scheduler").requests(cpu="1").gpu(2)
_CARDS = {GPU: "4", "cpu": "8"}


@pytest.mark.parametrize(("topologies", "looks"), [(("rack", "rack"), True), (("rack", ""), False), (("", ""), False)])
def test_kueue_looks_at_nodes_if_all_flavors_of_the_queue_have_a_topology(
    topologies: tuple[str, str], looks: bool
) -> None:
    flavors = [resource_flavor(name) for name in ("spot", "demand")]
    for flavor, topology in zip(flavors, topologies, strict=True):
        flavor["spec"]["topologyName"] = topology
    snapshot = made_anew([local_queue("q"), cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}), *flavors])
    names = [BatchNames("kueue", "q", "", has_owner=False, starts_whole=True)]

    found = grouped(GangRequest("train", 4, "s", starts_whole=False), names, "default", snapshot)

    assert found is not None
    assert (found.least == 4) is looks


@pytest.mark.parametrize("controls", [True, False])
def test_kai_knows_the_gang_of_a_job_that_controls_the_pod(controls: bool) -> None:
    content = _KAI.owner("PyTorchJob", "train", api_version="kubeflow.org/v1").obj()
    content["metadata"]["ownerReferences"][0]["controller"] = controls
    (names,) = batch_names_of(content, backend_of(policy_with().spec, "kai-scheduler"))
    assert names.starts_whole is controls


_GANG = make_pod().namespace("default").annotate("maip.mxsf.io/gang", "train").gpu(2)
_OF_VOLCANO = _GANG.scheduler("volcano").annotate("scheduling.k8s.io/group-name", "g")
_OF_KAI = _GANG.scheduler("kai-scheduler").annotate("pod-group-name", "g")


@pytest.mark.parametrize(
    ("pod", "group", "holder"),
    [
        pytest.param(_OF_VOLCANO, volcano_group("g", members=6), "Volcano", id="volcano"),
        pytest.param(_OF_KAI, kai_group("g", members=6), "KAI", id="kai"),
        pytest.param(
            _GANG.scheduler("coscheduling").label("scheduling.x-k8s.io/pod-group", "g"),
            pod_group("g", group="scheduling.x-k8s.io", members=6),
            "Coscheduling",
            id="coscheduling",
        ),
        pytest.param(
            _GANG.scheduler("native").spec(schedulingGroup={"podGroupName": "g"}),
            pod_group("g", group="scheduling.k8s.io", members=6),
            "kube-scheduler",
            id="native",
        ),
    ],
)
def test_group_that_needs_more_pods_than_the_gang_has_never_starts(pod: PodBuilder, group: Object, holder: str) -> None:
    found = warnings_of(pod, [group], GangRequest("train", 4, "s", starts_whole=True))

    assert found == [f"{holder}: PodGroup g needs 6 pods, and the gang has 4: it never starts"]
