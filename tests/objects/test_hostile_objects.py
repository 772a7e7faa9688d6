"""Objects of hostile users: the work has bounds, however many replicas and templates an object has."""

import asyncio
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import SAMPLES, Object, Sample
from tests.support.random.random_json import replace_somewhere
from tests.support.servers.server import Clock, World, arrival, review_bytes
from tests.support.work import calls_of
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised, ObjectVerdict, Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.documents.object_path import segments
from webhook.kube.deadline import BudgetSpentError, Expired, never
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.objects import advice
from webhook.objects.admission import admit_request
from webhook.objects.workload import MOST_TEMPLATES
from webhook.placement.replicas.replicas import MOST_REPLICAS
from webhook.serving.clock import rfc3339_now
from webhook.serving.scheduling.dispatcher import SMALL_BYTES
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget

DEPLOYMENT, VOLCANO, WORKFLOW, RAY = (
    next(each for each in SAMPLES if (each.group, each.kind) == name)
    for name in (
        ("apps", "Deployment"),
        ("batch.volcano.sh", "Job"),
        ("argoproj.io", "Workflow"),
        ("ray.io", "RayCluster"),
    )
)
POLICY = policy_with()


def view(gpus: int) -> ClusterView:
    node = make_node_object(
        "n", labels={f"{DOMAIN}/node.usage": "training"}, capacity={"nvidia.com/gpu": gpus, "pods": gpus}
    )
    return ClusterView(snapshot_from_documents([Document("cluster", node)]), scheduler_for(POLICY))


LARGE, SMALL = view(2_000_000), view(3)


def template() -> Object:
    return make_pod("").gpu(1).label("app", "web").annotate(TYPE, "training").template()


def admitted(
    content: Object, cluster: ClusterView, expired: Expired = never, **request: Any
) -> Verdict | ObjectVerdict:
    group, _, _ = content["apiVersion"].rpartition("/")
    fields = {"kind": content["kind"], "group": group, "resource": "", "namespace": "team-a", "name": "web"}
    return admit_request(make_request(content, **(fields | request)), POLICY, cluster, expired)


def work(content: Object, cluster: ClusterView) -> int:
    return calls_of(lambda: admitted(content, cluster))


@pytest.fixture
def most_replicas(monkeypatch: pytest.MonkeyPatch) -> int:
    """A tenth of the replicas that are placed at most, which cost a tenth."""
    monkeypatch.setattr(advice, "MOST_REPLICAS", MOST_REPLICAS // 10)
    return MOST_REPLICAS // 10


@pytest.mark.slow
def test_a_million_replicas_cost_as_much_as_the_most_that_are_placed(most_replicas: int) -> None:
    few, many = (DEPLOYMENT.object(template(), replicas=number) for number in (most_replicas, 1_000_000))
    verdicts: list[Verdict | ObjectVerdict] = []
    calls = calls_of(lambda: verdicts.append(admitted(many, LARGE)))

    assert verdicts[0].warnings == (
        f"placement check: at least {most_replicas} of 1000000 replicas fit now; the others were not checked",
    )
    assert calls < 1.1 * work(few, LARGE)


def test_counts_of_roles_are_the_least_once_one_role_is_not_checked_to_its_end(most_replicas: int) -> None:
    spec = RAY.spec(template(), 1_000_000)
    spec["headGroupSpec"]["template"] = template()
    spec["workerGroupSpecs"][0].pop("maxReplicas")
    verdict = admitted(RAY.object(template()) | {"spec": spec}, LARGE)

    (warning,) = verdict.warnings
    assert warning == (
        f"placement check: at least head 1 of 1, gpu {most_replicas - 1} of 1000000 replicas fit now; "
        "the others were not checked"
    )


def test_all_roles_of_an_object_share_the_most_replicas_that_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit, one pod of each further role is placed."""
    monkeypatch.setattr(advice, "MOST_REPLICAS", 4)
    spec = RAY.spec(template(), 1)
    spec["headGroupSpec"]["template"] = template()
    (group,) = spec["workerGroupSpecs"]
    group.pop("maxReplicas", None)
    spec["workerGroupSpecs"] = [group | {"groupName": f"g{each}", "replicas": each} for each in (2, 5, 3)]
    verdict = admitted(RAY.object(template()) | {"spec": spec}, LARGE)

    (warning,) = verdict.warnings
    assert warning == (
        "placement check: at least head 1 of 1, g2 2 of 2, g5 1 of 5, g3 1 of 3 replicas fit now; "
        "the others were not checked"
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [VOLCANO, WORKFLOW], ids=lambda each: each.kind)
def test_further_templates_are_not_read(kind: Sample) -> None:
    def object_with(number: int) -> Object:
        made = kind.object(template())
        key = "tasks" if kind is VOLCANO else "templates"
        (item,) = made["spec"][key]
        made["spec"][key] = [item | {"name": f"n-{index}"} for index in range(number)]
        return made

    verdict = admitted(object_with(2_000), LARGE)

    assert isinstance(verdict, Advised)
    assert verdict.warnings == (
        f"placement check: only the first {MOST_TEMPLATES} pod templates, or fewer, were evaluated",
    )
    assert work(object_with(2_000), LARGE) < 1.02 * work(object_with(MOST_TEMPLATES + 1), LARGE)


def after(calls: int, end: Callable[[], bool]) -> Expired:
    left = iter(range(calls))
    return lambda: False if next(left, None) is not None else end()


def spent() -> bool:
    raise BudgetSpentError(150)


@pytest.mark.parametrize("end", [lambda: True, spent], ids=["deadline", "budget"])
@pytest.mark.parametrize("calls", [0, 5, 20, 60, 200])
def test_once_there_is_no_time_left_the_replicas_so_far_count(end: Callable[[], bool], calls: int) -> None:
    verdict = admitted(DEPLOYMENT.object(template(), replicas=1_000_000), LARGE, after(calls, end))

    assert isinstance(verdict, Advised | Bypassed)
    if calls == 200:
        (warning,) = verdict.warnings
        assert warning.startswith("placement check: Unknown: at least ")
        assert " of 1000000 replicas fit now; the next: the " in warning


@pytest.mark.parametrize("end", [lambda: True, spent], ids=["deadline", "budget"])
def test_errors_are_found_without_time_for_the_placement(end: Callable[[], bool]) -> None:
    mistyped = make_pod("").annotate(TYPE, "trainning").template()

    assert isinstance(admitted(DEPLOYMENT.object(mistyped), LARGE, after(1, end)), Denied)


def test_costly_objects_are_left_to_the_worker() -> None:
    clock = Clock()

    def advancing() -> float:
        clock.seconds += 0.001
        return clock.seconds

    budget = WorkBudget(None, 10_000, monotonic_seconds=advancing, cpu_seconds=clock, slice_seconds=0.01)

    with pytest.raises(TimeSliceEndedError):
        admitted(DEPLOYMENT.object(template(), replicas=1_000_000), LARGE, budget)


def ended() -> bool:
    raise TimeSliceEndedError


def test_templates_that_create_no_pod_are_left_to_the_worker() -> None:
    steps = WORKFLOW.object(template())
    steps["spec"]["templates"] = [{"name": f"n-{index}"} for index in range(1000)]

    with pytest.raises(TimeSliceEndedError):
        admitted(steps, SMALL, after(100, ended))


def test_evaluations_of_many_templates_are_left_to_the_worker() -> None:
    job = VOLCANO.object(make_pod("").annotate(TYPE, "trainning").template())
    (task,) = job["spec"]["tasks"]
    job["spec"]["tasks"] = [task | {"name": f"n-{index}"} for index in range(MOST_TEMPLATES)]

    with pytest.raises(TimeSliceEndedError):
        admitted(job, SMALL, after(MOST_TEMPLATES + 1, ended))


@given(st.data(), st.sampled_from(SAMPLES), st.sampled_from(["CREATE", "UPDATE"]))
def test_no_json_is_an_internal_error(data: st.DataObject, sample: Sample, operation: str) -> None:
    content, broken = (deepcopy(sample.object(template(), replicas=5)) for _ in range(2))
    replace_somewhere(broken, data)
    fields = {"kind": sample.kind, "group": sample.group, "resource": "", "namespace": "team-a", "name": "web"}
    request = make_request(broken, operation=operation, old_object=content, **fields)

    try:
        verdict = admit_request(request, POLICY, SMALL)
    except InvalidInput:
        return
    assert verdict.outcome in ("Unchanged", "Bypassed", "Denied")


def test_templates_that_are_nested_too_deeply_to_be_compared_count_as_changed() -> None:
    def nested() -> Object:
        made = DEPLOYMENT.object(template(), replicas=5)
        inner: list[Any] = []
        for _ in range(100_000):
            inner = [inner]
        made["spec"]["template"]["spec"]["unknownField"] = inner
        return made

    verdict = admitted(nested(), SMALL, operation="UPDATE", old_object=nested())

    assert isinstance(verdict, Advised)
    assert verdict.placement is not None
    assert "nested deeper than any pod" in verdict.placement.message


def test_replicas_leave_nothing_in_the_view() -> None:
    def labelled(number: int) -> Object:
        pod = make_pod("").gpu(1).label("app", f"web-{number}").annotate(TYPE, "training")
        return DEPLOYMENT.object(pod.template(), replicas=2)

    before = len(SMALL.snapshot.pods.classes)
    for number in range(5):
        admitted(labelled(number), SMALL)

    assert len(SMALL.snapshot.pods.classes) == before


KINDS = list(POLICY.kinds.values())
ENDS: tuple[Any, ...] = (None, {}, [], 5, "x", {"metadata": None})


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: f"{each.kind}.{each.group}")
def test_an_object_that_ends_before_its_templates_is_left_to_the_api_server(kind: WorkloadKind) -> None:
    """Its annotations are in the wrong place at each level, and what follows is missing or of another type."""
    annotated = {"annotations": {TYPE: "training"}}
    for path in (*(each.template for each in kind.templates), *kind.passed_on):
        steps = segments(path)
        for length in range(1, len(steps)):
            for end in ENDS:
                content: Any = end
                for step in reversed(steps[:length]):
                    content = [content, None] if step == "*" else {step: content, "metadata": annotated}
                if isinstance(content, dict):
                    whole = {"apiVersion": f"{kind.group}/v1", "kind": kind.kind, **content}
                    assert isinstance(admitted(whole, SMALL), Bypassed)


@pytest.mark.parametrize("value", [None, 5, "x", [], [1]])
@pytest.mark.parametrize("part", ["metadata", "labels", "annotations"])
def test_an_object_with_metadata_of_a_wrong_type_is_bypassed_where_they_are_read(part: str, value: Any) -> None:
    """The labels of the object are not read, and null counts as absent. So the template is evaluated."""
    for path in ((), ("spec", "template")):
        content: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template()}}
        holder = content
        for step in path:
            holder = holder[step]
        holder["metadata"] = value if part == "metadata" else {"name": "web", part: value}
        is_evaluated = not path and (part == "labels" or value is None)
        assert isinstance(admitted(content, SMALL), Advised if is_evaluated else Bypassed)


@pytest.mark.slow
def test_an_object_with_a_million_replicas_is_left_to_the_worker() -> None:
    """The pods of others do not wait for it."""
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    body = review_bytes(DEPLOYMENT.object(template(), replicas=1_000_000), kind=kind, resource=kind)
    world = World(cluster=LARGE, clock=time.monotonic)

    async def story() -> bytes:
        dispatcher = world.dispatcher()
        answer = asyncio.ensure_future(dispatcher.answer(body, arrival(rfc3339_now())))
        await asyncio.sleep(0)
        assert dispatcher.waiting == 1
        found = await answer
        dispatcher.close()
        return found.body

    assert len(body) < SMALL_BYTES
    warnings = orjson.loads(asyncio.run(story()))["response"]["warnings"]
    assert warnings[0].startswith(("placement check: Unknown: at least ", "placement check: at least 1000 of 1000000"))
    assert [record.kind for record in world.records] == ["Deployment"]
