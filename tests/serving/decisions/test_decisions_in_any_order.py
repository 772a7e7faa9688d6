"""A decision with all that is kept is that of a server that has just started, whatever happened before."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, policy_with
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.random.pod_fields import CHANGES, FIELDS, with_field
from tests.support.random.random_pods import pods
from tests.support.servers.server import make_work_budget, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.cluster.update import updated
from webhook.documents.documents import Document
from webhook.kube.api.admission import parse_review
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.pod_view import Container, PodMetadata, PodSpec
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import assume
from webhook.policy.policy import Policy
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import Candidate, Rendered

Object = dict[str, Any]

NODES = [
    make_node_object(
        name, labels={USAGE: "training", "zone": zone, "nvidia.com/gpu.product": "NVIDIA-H20"}, capacity=room
    )
    for name, zone, room in (
        ("node-1", "a", {"nvidia.com/gpu": 4, "cpu": 8}),
        ("node-2", "a", {"nvidia.com/gpu": 4, "cpu": 8}),
        ("node-3", "b", {"nvidia.com/gpu": 2, "cpu": 4}),
    )
]
WORKER = make_pod("worker").annotate(TYPE, "training")
GANG = WORKER.annotate(f"{DOMAIN}/gang", "train").annotate(f"{DOMAIN}/gang-size", "4").gpu(2)
TEMPLATES: list[Object] = [
    WORKER.gpu(1).obj(),
    WORKER.gpu(2).obj(),
    WORKER.gpu(2).spec(priority=7).obj(),
    WORKER.requests(cpu="3").host_port(80).obj(),
    WORKER.gpu(9).obj(),
    WORKER.annotate(PRODUCT, "NVIDIA-NONE").gpu(1).obj(),
    WORKER.annotate(TYPE, "unheard-of").obj(),
    WORKER.owner("DaemonSet", "agent").obj(),
    GANG.obj(),
    make_pod("bare").gpu(1).obj(),
]
POLICIES: list[Policy] = [
    policy_with(),
    policy_with(placementCheck={"mode": "deny"}),
    policy_with(invalidAnnotations="deny"),
    policy_with(mode="shadow"),
]
ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {PRODUCT: "NVIDIA-H20"},
    {TYPE: "inference"},
    {f"{DOMAIN}/inject": "disabled"},
)


class World:
    """A server with all that it keeps, and the cluster that it sees."""

    def __init__(self) -> None:
        self.decisions = DecisionCache()
        self.assumed: AssumedPods[int] = AssumedPods(snapshot_from_documents(Document("node", each) for each in NODES))
        self.running: list[RunningPod] = []
        self.admitted = 0
        self.put_in_force(0)

    def put_in_force(self, number: int) -> None:
        """Replace the policy, as a reload does."""
        self.policy = POLICIES[number % len(POLICIES)]
        self.scheduler = scheduler_for(self.policy)

    def move_on(self, snapshot: Snapshot) -> None:
        """Take over a later state of the cluster."""
        self.assumed.follow(replace(snapshot, generation=self.assumed.base.generation + 1))

    def run(self, number: int) -> None:
        """Let a pod of another owner run on a node."""
        base = self.assumed.base
        name = base.nodes[number % len(base.nodes)].node.name
        content = make_pod(f"runs-{number}").gpu(1 + number % 3).label("app", "x").obj()
        self.running.append(RunningPod.of(content).assumed_on(name, 0))
        self._set(name)

    def end(self, number: int) -> None:
        """Let one of these pods end."""
        if self.running:
            self._set(self.running.pop(number % len(self.running)).node_name)

    def _set(self, name: str) -> None:
        base = self.assumed.base
        info = NodeInfo.of(base.nodes[base.rows[name]].node, [each for each in self.running if each.node_name == name])
        self.move_on(updated(base, [info], base.generation + 1))

    def annotate(self, number: int) -> None:
        """Replace the annotations of the namespace."""
        namespace = Namespace({}, ANNOTATIONS[number % len(ANNOTATIONS)])
        self.move_on(replace(self.assumed.base, namespaces={"team-a": namespace}))

    def forget(self, number: int) -> None:
        """Let a pod that waits be deleted."""
        keys = [*self.assumed.by_key]
        if keys:
            self.assumed.forget((keys[number % len(keys)],))

    def admit(self, pod: Object) -> tuple[Rendered, Rendered]:
        """Return the decision on `pod`, and that of a server that has just started."""
        metadata = {**pod["metadata"], "name": f"pod-{self.admitted}"}
        request = parse_review(review_bytes({**pod, "metadata": metadata}))
        assert request.identity == PodIdentity.of({**pod, "metadata": metadata}, "team-a")
        base, anew = self.assumed.base, self.assumed.copy()
        fresh = DecisionCache().decide(
            request, self.policy, ClusterView(base, scheduler_for(self.policy), assumed=anew), make_work_budget()
        )
        view = ClusterView(base, self.scheduler, assumed=self.assumed)
        kept = self.decisions.decide(request, self.policy, view, make_work_budget())
        return kept, fresh

    def reserve(self, candidate: Candidate | None) -> None:
        """Let an admitted pod wait for the node of its placement."""
        self.admitted += 1
        if candidate is not None and candidate.placement.verdict == "Feasible":
            assume(self.admitted, candidate.pod, candidate.placement, self.assumed)


def said(rendered: Rendered) -> tuple[Any, ...]:
    """Return all that a decision says, to the user, in the audit log, and to the pods that wait."""
    found, waits = rendered, rendered.candidate
    room: tuple[Any, ...] = ()
    if waits is not None:
        # Equal pods wait under the name of the first of them.
        room = waits.digest, waits.pod.signature, waits.pod.running._replace(name=""), waits.placement
    return found.answer.to("uid", "decision"), found.record, found.counted, found.report, found.placement, room


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("admit", "admit", "admit", "admit", "run", "end", "forget", "annotate", "policy")),
        st.integers(0, 11),
    ),
    min_size=2,
    max_size=14,
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(TEMPLATES) | pods(), min_size=1, max_size=3), _STEPS)
def test_a_decision_is_that_of_a_server_that_has_just_started(
    templates: list[Object], steps: list[tuple[str, int]]
) -> None:
    world = World()
    change = {
        "run": world.run,
        "end": world.end,
        "forget": world.forget,
        "annotate": world.annotate,
        "policy": world.put_in_force,
    }
    for step, number in steps:
        if step == "admit":
            kept, fresh = world.admit(templates[number % len(templates)])
            assert said(kept) == said(fresh)
            world.reserve(kept.candidate)
        else:
            change[step](number)


@settings(max_examples=examples(100), deadline=None)
@given(pods(), st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4), st.integers(0, 3))
def test_a_decision_behind_pods_that_differ_in_one_field_is_that_of_a_server_that_has_just_started(
    pod: Object, changes: list[tuple[str, str, Any]], policy: int
) -> None:
    world = World()
    world.put_in_force(policy)
    for each in (pod, *(with_field(pod, *change) for change in changes), pod):
        kept, fresh = world.admit(each)
        assert said(kept) == said(fresh)
        world.reserve(kept.candidate)


@pytest.mark.parametrize(
    ("part", "struct"), [("metadata", PodMetadata), ("spec", PodSpec), ("container", Container)], ids=lambda each: each
)
def test_every_field_of_a_template_that_is_read_is_tried(part: str, struct: type[Struct]) -> None:
    of_one_pod = {"name", "generateName", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"}
    read = {each.encode_name for each in fields(struct)} - (of_one_pod if part == "metadata" else set())

    assert {name for place, name in FIELDS if place == part} == read
