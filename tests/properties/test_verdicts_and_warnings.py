"""No verdict contradicts its own warnings, with any backend."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, policy_with
from tests.support.objects.batch_objects import kai_group, kai_queue, pod_group, volcano_group, volcano_queue
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Denied
from webhook.admission.verdict import placement_of
from webhook.placement.scheduler import Scheduler

BACKENDS = ("default", "volcano", "kai", "coscheduling", "native")
CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("high", 10000), ("low", 1))
]
priorities = st.sampled_from([{}, {"priority": 0}, {"priority": 1}, {"priorityClassName": "high"}])
native_specs = st.builds(
    lambda priority, topology: {**priority, **topology},
    priorities,
    st.sampled_from([{}, {"schedulingConstraints": {"topology": [{"key": "rack"}]}}]),
)


def group_of(backend: str, members: int, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the PodGroup "g" of `backend` that needs so many `members`, and its queue."""
    if backend == "volcano":
        return [volcano_group("g", members=members), volcano_queue()]
    if backend == "kai":
        return [kai_group("g", members=members), kai_queue("team")]
    if backend == "coscheduling":
        return [pod_group("g", group="scheduling.x-k8s.io", members=members)]
    return [pod_group("g", group="scheduling.k8s.io", members=members, **spec)] if backend == "native" else []


@example("native", 2, 0, {"priority": 0}, 1, 0, "high", False, "warn")
@given(
    backend=st.sampled_from(BACKENDS),
    size=st.none() | st.integers(1, 6),
    members=st.integers(0, 6),
    spec=native_specs,
    cards=st.integers(0, 6),
    used=st.integers(0, 6),
    priority_class=st.sampled_from(["", "high", "low", "missing"]),
    is_gated=st.booleans(),
    mode=st.sampled_from(["warn", "deny"]),
)
def test_no_verdict_contradicts_its_own_warnings(
    backend: str,
    size: int | None,
    members: int,
    spec: dict[str, Any],
    cards: int,
    used: int,
    priority_class: str,
    is_gated: bool,
    mode: str,
) -> None:
    pod = make_pod("g-0").annotate(TYPE, "training").annotate(f"{DOMAIN}/gang", "g").gpu(1)
    pod = pod if size is None else pod.annotate(f"{DOMAIN}/gang-size", str(size))
    pod = pod.spec(priorityClassName=priority_class) if priority_class else pod
    pod = pod.spec(schedulingGates=[{"name": "example.com/quota"}]) if is_gated else pod
    node = make_node_object("n", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": cards})
    running = make_pod("other").gpu(min(used, cards)).node_name("n").obj()
    policy = policy_with(
        schedulers={"own": {"backend": backend}},
        allowedSchedulers=["own"],
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "own"}},
        placementCheck={"mode": mode},
    )
    objects = [node, running, *CLASSES, *group_of(backend, members, spec)]

    verdict = admit_pod(pod.obj(), policy, ClusterView(made_anew(objects), Scheduler()))

    found, texts = placement_of(verdict), "\n".join(verdict.warnings)
    assert found is not None
    is_of_cards = isinstance(verdict, Denied)
    if "never starts" in texts:
        assert found.verdict == "Infeasible"
        assert found.binding.verdict == "Infeasible"
        assert not is_of_cards or found.feasible == 0
    if "would start and hold" in texts:
        assert found.verdict in ("Waiting", "Infeasible")
        assert found.binding.verdict == "Feasible"
        assert found.gang is not None
        assert 0 < found.gang.fit < found.gang.size
    if found.verdict == "Feasible":
        assert "placement check: " not in texts
        assert found.gang is None or found.gang.fit == found.gang.size
