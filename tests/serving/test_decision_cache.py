"""Cached decisions on equal pods equal fresh ones."""

import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, make_request, policy_with
from tests.support.builders import PodBuilder, make_node_object, make_pod
from tests.support.random_pods import pods
from tests.support.server import make_work_budget
from tests.support.work import calls_of
from webhook.cluster.file import snapshot_from_documents
from webhook.evaluation import Injection, Mutated, PolicyResult, apply_rules, evaluate
from webhook.kube.admission import AdmissionRequest
from webhook.kube.deadline import never
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.pipeline import ClusterView, admit, admit_content, read_pod
from webhook.placement.scheduler import Scheduler
from webhook.pod_content import PodContent, fields_read
from webhook.policy.policy import Policy
from webhook.serving.decision_cache import RESULT_CACHE_BYTES, DecisionCache
from webhook.serving.reuse import UntilNextSnapshot
from webhook.verdict import Bypassed, Denied, Patched, Verdict

POLICY = policy_with()
TRAINING = make_pod("a").annotate(TYPE, "training")


def decision_cache(result_bytes: int = RESULT_CACHE_BYTES) -> DecisionCache:
    return DecisionCache(UntilNextSnapshot(), result_bytes)


def evaluated(decisions: DecisionCache, pod: PodBuilder, policy: Policy = POLICY, **fields: Any) -> PolicyResult:
    defaults = fields.pop("defaults", {})
    return decisions.evaluate(PodContent.of(make_request(pod.obj(), **fields), defaults), policy)


def admitted(decisions: DecisionCache, request: AdmissionRequest, cluster: ClusterView | None = None) -> Verdict:
    return admit_content(read_pod(request, cluster), POLICY, cluster, never, decisions.evaluate)


@given(pods(), pods(), st.sampled_from([{}, {PRODUCT: "NVIDIA-H20"}, {f"{DOMAIN}/inject": "disabled"}]))
def test_the_verdict_is_the_same_with_and_without_memory(
    first: dict[str, Any], second: dict[str, Any], defaults: dict[str, str]
) -> None:
    decisions = decision_cache()
    cluster = cluster_of({"namespace": {"name": "default", "annotations": defaults}})
    renamed = second | {"metadata": second["metadata"] | {"name": "another"}}

    for pod in (first, second, renamed, first):
        request = make_request(pod)
        remembering = admitted(decisions, request, cluster)

        assert remembering == admit(request, POLICY, cluster)


@given(pods())
def test_the_patch_of_a_remembered_pod_fits_the_next_of_its_kind(pod: dict[str, Any]) -> None:
    decisions = decision_cache()
    admitted(decisions, make_request(pod))
    other = pod | {"metadata": pod["metadata"] | {"name": "another"}}

    again = admitted(decisions, make_request(other))

    alone = admit_pod(other, POLICY)
    assert isinstance(again, Patched) == isinstance(alone, Patched)
    if isinstance(again, Patched) and isinstance(alone, Patched):
        assert again.operations == alone.operations


def test_a_pod_of_the_same_template_is_remembered() -> None:
    decisions = decision_cache()

    assert evaluated(decisions, TRAINING) is evaluated(decisions, TRAINING)
    named, other = (make_pod(name).annotate(TYPE, "training") for name in ("b", "c"))
    assert evaluated(decisions, named) is evaluated(decisions, other)


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
    decisions = decision_cache()

    assert evaluated(decisions, pod, **fields) is not evaluated(decisions, TRAINING)


def test_what_nobody_reads_makes_no_other_question() -> None:
    """The API server gives each pod a token volume with a name of its own."""
    decisions = decision_cache()

    def with_token(name: str) -> PodBuilder:
        mount = {"name": name, "mountPath": "/var/run/secrets"}
        containers = [{"name": "main", "image": "x", "volumeMounts": [mount], "env": [{"name": "A", "value": name}]}]
        return TRAINING.spec(volumes=[{"name": name, "projected": {"sources": []}}], containers=containers)

    first, second = (
        evaluated(decisions, with_token("kube-api-access-x1")),
        evaluated(decisions, with_token("kube-api-access-x2")),
    )

    assert first is second


def test_a_claim_makes_another_question() -> None:
    decisions = decision_cache()
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}

    assert evaluated(decisions, TRAINING.spec(volumes=[claim])) is not evaluated(decisions, TRAINING)


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

    def copy(self) -> "Watched":
        copied = Watched(self)
        copied.fields_read = self.fields_read
        return copied


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_what_is_read_of_a_container_is_part_of_the_question(kind: str) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
    container = Watched({"name": "main", "image": "x", "restartPolicyRules": rules, "env": [{"name": "A"}]})
    pod = TRAINING.obj()
    pod["spec"][kind] = [container]

    verdict = evaluate(PodContent.of(make_request(pod), {}), POLICY)

    assert isinstance(verdict, Mutated)
    (asked,) = fields_read(pod).containers[kind]
    assert container.fields_read - {"name"} <= asked.keys()


def test_another_policy_forgets_everything() -> None:
    decisions = decision_cache()
    before = evaluated(decisions, TRAINING)

    other = evaluated(decisions, TRAINING, policy_with(keyDomain="example.com"))

    assert other != before
    after = evaluated(decisions, TRAINING)
    assert after == before
    assert after is not before


def test_only_what_fits_the_budget_is_remembered_the_last_asked_first() -> None:
    measuring = decision_cache()
    kinds = [TRAINING.label("kind", str(number)) for number in range(6)]
    evaluated(measuring, kinds[0])
    decisions = decision_cache(5 * measuring.results[0].used_bytes * 4 // 3 + 3)
    first, second, *_ = [evaluated(decisions, kind) for kind in kinds[:5]]
    assert evaluated(decisions, kinds[0]) is first

    evaluated(decisions, kinds[5])

    assert all(cache.used_bytes <= cache.budget_bytes for cache in decisions.results)
    assert evaluated(decisions, kinds[0]) is first
    assert evaluated(decisions, kinds[1]) is not second


def test_a_pod_that_cannot_be_written_back_is_judged_all_the_same() -> None:
    """JSON is read deeper than it is written."""
    deep = orjson.loads('{"a":' * 500 + "1" + "}" * 500)
    pod = TRAINING.obj()
    pod["spec"]["later"] = deep

    assert isinstance(admitted(decision_cache(), make_request(pod)), Patched)


def test_large_pods_are_forgotten_before_they_fill_the_process() -> None:
    """An API server takes pods up to 3 MiB, from everybody who may create pods; the container has 512 MiB."""
    decisions = decision_cache()
    first, *others = [
        TRAINING.spec(nodeSelector={f"key-{number}-{each}": "value" for each in range(1000)}) for number in range(64)
    ]
    before = evaluated(decisions, first)

    for pod in others:
        evaluated(decisions, pod)

    assert evaluated(decisions, first) is not before


@pytest.mark.parametrize("has_view", [False, True])
def test_nothing_holds_on_to_a_large_pod_that_has_been_answered(has_view: bool) -> None:
    text = "x" * 2**20
    request = make_request(TRAINING.spec(hostname=text).obj())
    cluster = cluster_of({"cluster": [make_node_object("node-1")]}) if has_view else None
    decisions = decision_cache()
    before = sys.getrefcount(text)

    decisions.decide(request, POLICY, cluster, make_work_budget())

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
    asked = [evaluated(decision_cache(), pod) for pod in (stored, stored.status(nominatedNodeName="a"))]
    assert all(isinstance(each, Mutated) for each in asked)
    assert len({each.signature for each in asked if isinstance(each, Mutated)}) == 1


@pytest.mark.parametrize("extra", [{}, {"tolerations": [{"operator": "Exists"}], "schedulerName": "mine"}])
def test_the_rules_read_nothing_of_containers_and_volumes(extra: dict[str, Any]) -> None:
    pod = TRAINING.annotate(PRODUCT, "NVIDIA-H20").spec(**extra).obj()
    spec = pod["spec"] = Watched(pod["spec"])
    content = PodContent.of(make_request(pod), {})
    spec.fields_read.clear()

    assert isinstance(apply_rules(content, ("nvidia.com/gpu",), POLICY), Injection)
    assert "affinity" in spec.fields_read
    assert spec.fields_read.isdisjoint({"containers", "initContainers", "volumes"})


@given(pods(), pods())
def test_the_rules_are_applied_once_for_pods_that_differ_in_their_containers(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    decisions = decision_cache()
    mixed = first | {"spec": first["spec"] | {"containers": second["spec"]["containers"]}}

    for pod in (first, mixed):
        assert admitted(decisions, make_request(pod)) == admit(make_request(pod), POLICY, None)


def test_defaults_of_a_namespace_apply_by_what_the_pod_requests_not_by_an_equal_pod() -> None:
    """Whether a pod requests a card follows from the names of its resources and from `spec.resourceClaims`."""
    decisions = decision_cache()
    pods_by_request = {
        "nothing": make_pod(),
        "a card": make_pod().gpu(1),
        "a claim": make_pod().spec(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}]),
    }

    results = {
        name: type(evaluated(decisions, pod, defaults={TYPE: "inference"})) for name, pod in pods_by_request.items()
    }

    assert results == {"nothing": Bypassed, "a card": Mutated, "a claim": Mutated}


def test_each_operation_counts_for_a_kibibyte_of_memory() -> None:
    used_bytes, operations = [], []
    for pod in (TRAINING.spec(schedulerName="volcano"), TRAINING):
        decisions = decision_cache()
        result = evaluated(decisions, pod)
        assert isinstance(result, Mutated)
        assert not result.injection.warnings
        operations.append(len(result.injection.operations))
        used_bytes.append(decisions.results[1].used_bytes)

    assert operations[0] < operations[1]
    assert used_bytes[1] - used_bytes[0] == 1024 * (operations[1] - operations[0])


@pytest.mark.parametrize("field", ["name", "generateName"])
def test_a_name_of_the_wrong_type_is_rejected_behind_an_equal_pod_too(field: str) -> None:
    decisions = decision_cache()
    pod = TRAINING.obj()
    wrong = {**pod, "metadata": {**pod["metadata"], field: 5}}

    assert isinstance(admitted(decisions, make_request(pod)), Patched)
    with pytest.raises(InvalidInput, match=rf"metadata\.{field}"):
        admitted(decisions, make_request(wrong))


@pytest.mark.parametrize("reason", ["no workload type", "pod of a DaemonSet", "spec.nodeName is set"])
def test_the_resources_of_a_bypassed_pod_are_not_read(reason: str) -> None:
    def bypassed(amounts: int) -> PodContent:
        pod = make_pod("a").obj() if reason == "no workload type" else TRAINING.obj()
        if reason == "pod of a DaemonSet":
            pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent", "controller": True}]
        elif reason == "spec.nodeName is set":
            pod["spec"]["nodeName"] = "a"
        requests = {f"example.com/{number}": "1" for number in range(amounts)}
        pod["spec"]["containers"] = [{"name": "c", "image": "i", "resources": {"requests": requests}}] * 100
        return PodContent.of(make_request(pod), {})

    def calls(content: PodContent) -> int:
        return calls_of(lambda: evaluate(content, POLICY))

    few, many = bypassed(0), bypassed(100)
    assert evaluate(many, POLICY) == Bypassed(reason)
    assert calls(many) == calls(few)


def test_a_limit_of_cards_holds_behind_a_pod_that_differs_in_amounts_alone() -> None:
    decisions = decision_cache()
    policy = policy_with(namespaceLimits=[{"namespaces": ["*"], "maxCardsPerPod": 1}])

    outcomes = [type(evaluated(decisions, TRAINING.gpu(cards), policy)) for cards in (1, 2, 1)]

    assert outcomes == [Mutated, Denied, Mutated]
