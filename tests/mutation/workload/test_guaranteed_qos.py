"""The amounts that a pod lacks for the QoS class Guaranteed, and those of them that are set."""

from itertools import product
from typing import Any

import pytest

from tests.support.admission import policy_with
from tests.support.objects.builders import make_pod
from webhook.mutation.workload.guaranteed_qos import MOST_REPORTED, GuaranteedQos, read_guaranteed_qos
from webhook.policy.spec.workloads import WorkloadType


def guaranteed(**qos: Any) -> WorkloadType:
    types = {"t": {"nodeUsage": {"allow": ["t"]}, "qos": {"class": "Guaranteed", **qos}}}
    return policy_with(workloadTypes=types).spec.workload_types["t"]


def read(requests: dict[str, str], limits: dict[str, str], **qos: Any) -> GuaranteedQos:
    pod = make_pod("p").requests(**requests).limits(**limits).obj()
    found = read_guaranteed_qos(pod, "t", guaranteed(**qos))
    assert found is not None
    return found


def test_a_request_of_the_pod_that_is_a_sum_is_no_limit() -> None:
    """The API server writes the sum of the containers to the pod later."""
    pod = make_pod("p").requests(cpu="1", memory="1Gi").spec(resources={"limits": {"memory": "1Gi"}}).obj()

    found = read_guaranteed_qos(pod, "t", guaranteed(limitsFromRequests=True))

    assert found is not None
    assert found.amounts == ((("spec", "resources", "requests", "memory"), "1Gi"),)


AMOUNTS = {"": None, "1": 1000, "2": 2000, "500m": 500}


@pytest.mark.parametrize("fills_limits", [False, True])
@pytest.mark.parametrize("whole_cpus", [False, True])
def test_requests_follow_limits_and_limits_requests_if_the_policy_says_so(
    *, fills_limits: bool, whole_cpus: bool
) -> None:
    """Memory is complete; cpu has every combination of request and limit."""
    for request, limit in product(AMOUNTS, repeat=2):
        requests, limits = {"memory": "1Gi"}, {"memory": "1Gi"}
        requests |= {"cpu": request} if request else {}
        limits |= {"cpu": limit} if limit else {}
        found = read(requests, limits, limitsFromRequests=fills_limits, wholeCpus=whole_cpus)

        place = ("spec", "containers", 0, "resources")
        # A request that is missing is that of the limit.
        effective = AMOUNTS[request] if request else AMOUNTS[limit]
        amounts, gaps = [((*place, "requests", "memory"), "1Gi")], []
        if limit and effective == AMOUNTS[limit]:
            amounts.insert(0, ((*place, "requests", "cpu"), limit))
        elif not limit and request and fills_limits:
            amounts.insert(0, ((*place, "limits", "cpu"), request))
        elif not limit:
            gaps.append("limits.cpu: has no cpu limit")
        else:
            gaps.append("requests.cpu: requests less cpu than its limit")
        if whole_cpus and (not effective or effective % 1000):
            gaps.append("requests.cpu: does not request a whole number of CPUs")
        assert [*found.amounts] == amounts, (request, limit)
        texts = [(each.path, each.detail) for each in found.gaps]
        assert [path for path, _ in texts] == [f"spec.containers[0].resources.{gap.partition(':')[0]}" for gap in gaps]
        wanted = [f'container "main" {gap.partition(": ")[2]}, but workload type "t" asks for' for gap in gaps]
        assert all(detail.startswith(begin) for (_, detail), begin in zip(texts, wanted, strict=True))


@pytest.mark.parametrize("containers", [1, 2, 3])
def test_the_first_five_gaps_are_reported(containers: int) -> None:
    pod = make_pod("p")
    for number in range(1, containers):
        pod = pod.container(f"c{number}")
    found = read_guaranteed_qos(pod.obj(), "t", guaranteed(wholeCpus=True))

    assert found is not None
    # Two limits of each container, then its CPUs.
    gaps = [f"[{index}].resources.limits.{name}" for index in range(containers) for name in ("cpu", "memory")]
    gaps += [f"[{index}].resources.requests.cpu" for index in range(containers)]
    assert [each.path.removeprefix("spec.containers") for each in found.gaps] == gaps[:MOST_REPORTED]


def test_init_containers_need_amounts_and_no_whole_cpus() -> None:
    pod = make_pod("p").limits(cpu="1", memory="1Gi").obj()
    half = {"limits": {"cpu": "500m", "memory": "1Gi"}}
    pod["spec"]["initContainers"] = [{"name": "i", "resources": half}, {"name": "j"}]

    found = read_guaranteed_qos(pod, "t", guaranteed(wholeCpus=True))

    assert found is not None
    assert {path[1:3] for path, _ in found.amounts} == {("containers", 0), ("initContainers", 0)}
    assert {each.path.partition(".resources")[0] for each in found.gaps} == {"spec.initContainers[1]"}


def test_a_type_without_the_class_and_a_malformed_pod_get_nothing() -> None:
    """The API server rejects the pod; an amount that is set next to the malformed one would be in its message."""
    pod = make_pod("p").limits(cpu="1", memory="one").obj()
    plain = policy_with(workloadTypes={"t": {"nodeUsage": {"allow": ["t"]}}}).spec.workload_types["t"]

    assert read_guaranteed_qos(pod, "t", plain) is None
    for whole_cpus in (False, True):
        assert read_guaranteed_qos(pod, "t", guaranteed(wholeCpus=whole_cpus)) == GuaranteedQos()
