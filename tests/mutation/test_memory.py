"""What is remembered of equal pods is what would be said of each."""

import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, make_request, policy_with
from tests.support.builders import PodBuilder, make_node_object, make_pod
from tests.support.random_pods import pods
from webhook.cluster.file import snapshot_from_documents
from webhook.evaluation import Mutated, StaticVerdict, judge, read_of
from webhook.kube.documents import Document
from webhook.pipeline import Memory, admit
from webhook.placement.scheduler import Scheduler
from webhook.policy.policy import Policy
from webhook.serving.rendering import Renderings
from webhook.verdict import Patched, Unchanged, Verdict

POLICY = policy_with()
TRAINING = make_pod("a").annotate(TYPE, "training")


def judged(memory: Memory, pod: PodBuilder, policy: Policy = POLICY, **fields: Any) -> StaticVerdict:
    defaults = fields.pop("defaults", {})
    request = make_request(pod.obj(), **fields)
    return memory.judge(request, request.object or {}, defaults, policy)


def but_for_the_pod(verdict: Verdict) -> Verdict:
    """A memory keeps what is to be done to a pod, not the pod."""
    return replace(verdict, pod={}) if isinstance(verdict, Patched | Unchanged) else verdict


@given(pods(), pods(), st.sampled_from([{}, {PRODUCT: "NVIDIA-H20"}, {f"{DOMAIN}/inject": "disabled"}]))
def test_the_verdict_is_the_same_with_and_without_memory(
    first: dict[str, Any], second: dict[str, Any], defaults: dict[str, str]
) -> None:
    memory = Memory()
    cluster = cluster_of({"namespace": {"name": "default", "annotations": defaults}})
    renamed = second | {"metadata": second["metadata"] | {"name": "another"}}

    for pod in (first, second, renamed, first):
        request = make_request(pod)
        remembering = admit(request, POLICY, cluster, memory=memory)

        assert but_for_the_pod(remembering) == but_for_the_pod(admit(request, POLICY, cluster))


@given(pods())
def test_the_patch_of_a_remembered_pod_fits_the_next_of_its_kind(pod: dict[str, Any]) -> None:
    memory = Memory()
    admit(make_request(pod), POLICY, None, memory=memory)
    other = pod | {"metadata": pod["metadata"] | {"name": "another"}}

    again = admit(make_request(other), POLICY, None, memory=memory)

    alone = admit_pod(other, POLICY)
    assert isinstance(again, Patched) == isinstance(alone, Patched)
    if isinstance(again, Patched) and isinstance(alone, Patched):
        assert again.operations == alone.operations


def test_a_pod_of_the_same_template_is_remembered() -> None:
    memory = Memory()

    assert judged(memory, TRAINING) is judged(memory, TRAINING)
    named, other = (make_pod(name).annotate(TYPE, "training") for name in ("b", "c"))
    assert judged(memory, named) is judged(memory, other)


@pytest.mark.parametrize(
    ("pod", "fields"),
    [
        (TRAINING.label("a", "b"), {}),
        (TRAINING.annotate(PRODUCT, "NVIDIA-H20"), {}),
        (TRAINING.gpu(1), {}),
        (TRAINING, {"namespace": "team-a"}),
        (TRAINING, {"defaults": {PRODUCT: "NVIDIA-H20"}}),
    ],
    ids=["a label", "an annotation", "resources", "the namespace", "the namespace's defaults"],
)
def test_another_question_is_asked_anew(pod: PodBuilder, fields: dict[str, Any]) -> None:
    memory = Memory()

    assert judged(memory, pod, **fields) is not judged(memory, TRAINING)


def test_what_nobody_reads_makes_no_other_question() -> None:
    """The API server gives each pod a token volume with a name of its own."""
    memory = Memory()

    def with_token(name: str) -> PodBuilder:
        mount = {"name": name, "mountPath": "/var/run/secrets"}
        containers = [{"name": "main", "image": "x", "volumeMounts": [mount], "env": [{"name": "A", "value": name}]}]
        return TRAINING.spec(volumes=[{"name": name, "projected": {"sources": []}}], containers=containers)

    first, second = judged(memory, with_token("kube-api-access-x1")), judged(memory, with_token("kube-api-access-x2"))

    assert first is second


def test_a_claim_makes_another_question() -> None:
    memory = Memory()
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}

    assert judged(memory, TRAINING.spec(volumes=[claim])) is not judged(memory, TRAINING)


class Watched(dict[str, Any]):
    """An object of the API that notes which of its fields are read."""

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(content)
        self.fields_read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.fields_read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.fields_read.add(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_what_is_read_of_a_container_is_part_of_the_question(kind: str) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
    container = Watched({"name": "main", "image": "x", "restartPolicyRules": rules, "env": [{"name": "A"}]})
    pod = TRAINING.obj()
    pod["spec"][kind] = [container]

    verdict = judge(make_request(pod), pod, {}, POLICY)

    assert isinstance(verdict, Mutated)
    (asked,) = read_of(pod)["spec"][kind]
    assert container.fields_read - {"name"} <= asked.keys()


def test_another_policy_forgets_everything() -> None:
    memory = Memory()
    before = judged(memory, TRAINING)

    other = judged(memory, TRAINING, policy_with(keyDomain="example.com"))

    assert other != before
    after = judged(memory, TRAINING)
    assert after == before
    assert after is not before


def test_only_what_fits_the_budget_is_remembered_the_last_asked_first() -> None:
    measuring = Memory()
    kinds = [TRAINING.label("kind", str(number)) for number in range(6)]
    judged(measuring, kinds[0])
    room_for_five = 5 * measuring.caches[0].used_bytes * 4 // 3 + 3
    memory = Memory(room_for_five)
    first, second, *_ = [judged(memory, kind) for kind in kinds[:5]]
    assert judged(memory, kinds[0]) is first

    judged(memory, kinds[5])

    assert all(cache.used_bytes <= cache.budget_bytes for cache in memory.caches)
    assert judged(memory, kinds[0]) is first
    assert judged(memory, kinds[1]) is not second


def test_a_pod_that_cannot_be_written_back_is_judged_all_the_same() -> None:
    """JSON is read deeper than it is written."""
    deep = orjson.loads('{"a":' * 500 + "1" + "}" * 500)
    pod = TRAINING.obj()
    pod["spec"]["later"] = deep

    assert isinstance(admit(make_request(pod), POLICY, None, memory=Memory()), Patched)


def test_large_pods_are_forgotten_before_they_fill_the_process() -> None:
    """An API server takes pods up to 3 MiB, from everybody who may create pods; the container has 512 MiB."""
    memory = Memory()
    first, *others = [
        TRAINING.spec(nodeSelector={f"key-{number}-{each}": "value" for each in range(1000)}) for number in range(64)
    ]
    before = judged(memory, first)

    for pod in others:
        judged(memory, pod)

    assert judged(memory, first) is not before


@pytest.mark.parametrize("has_view", [False, True])
def test_nothing_holds_on_to_a_large_pod_that_has_been_answered(has_view: bool) -> None:
    text = "x" * 2**20
    request = make_request(TRAINING.spec(hostname=text).obj())
    cluster = cluster_of({"cluster": [make_node_object("node-1")]}) if has_view else None
    memory, renderings = Memory(), Renderings()
    before = sys.getrefcount(text)

    verdict = admit(request, POLICY, cluster, memory=memory)
    renderings.of(request, verdict, POLICY, cluster.snapshot if cluster else None)
    del verdict

    assert sys.getrefcount(text) == before


def test_large_pods_are_forgotten_by_the_scorer_too() -> None:
    snapshot = snapshot_from_documents([Document("node", make_node_object("node-1"))])
    framework = Scheduler()
    first, *others = [TRAINING.toleration(str(number), value="x" * 2**20).obj() for number in range(64)]
    before = framework.place(first, snapshot)

    for pod in others:
        framework.place(pod, snapshot)

    assert framework.place(first, snapshot) is not before


def test_a_status_that_the_api_server_will_not_store_is_not_asked_about() -> None:
    stored = TRAINING.namespace("default")
    asked = [judged(Memory(), pod) for pod in (stored, stored.status(nominatedNodeName="a"))]
    assert all(isinstance(each, Mutated) for each in asked)
    assert len({each.question for each in asked if isinstance(each, Mutated)}) == 1
