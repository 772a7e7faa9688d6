"""Cached decisions on equal pods equal fresh ones."""

import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.serving.decisions.decided import POLICY, VIEW, decided, evaluated, view_of
from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.random.random_pods import pods
from tests.support.servers.server import make_work_budget, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pipeline import admit
from webhook.admission.pod_content import PodContent
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import parse_review
from webhook.kube.names import LIMIT_RANGER
from webhook.placement.reasons.cluster_warnings import NO_SIGN
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import render

Object = dict[str, Any]
TRAINING = make_pod("a").annotate(TYPE, "training")


def same_as_alone(decisions: DecisionCache, pod: Object, cluster: ClusterView | None = None) -> None:
    """Assert that the decision on `pod` is that without a cache."""
    request = make_request(pod)
    rendered = decisions.decide(request, POLICY, cluster, make_work_budget())
    assert rendered == render(request, admit(request, POLICY, cluster), POLICY)


@given(pods(), pods(), st.sampled_from([{}, {PRODUCT: "NVIDIA-H20"}, {f"{DOMAIN}/inject": "disabled"}]))
def test_the_decision_is_the_same_with_and_without_memory(
    first: Object, second: Object, defaults: dict[str, str]
) -> None:
    decisions = DecisionCache()
    cluster = cluster_of({"namespace": {"name": "default", "annotations": defaults}})
    renamed = second | {"metadata": second["metadata"] | {"name": "another"}}

    for pod in (first, second, renamed, first):
        same_as_alone(decisions, pod, cluster)


def test_a_pod_of_the_same_template_is_remembered() -> None:
    decisions = DecisionCache()
    named, other = (make_pod(name).annotate(TYPE, "training") for name in ("b", "c"))

    assert decided(decisions, named) is decided(decisions, other)


@pytest.mark.parametrize(
    ("pod", "fields"),
    [
        (TRAINING.label("a", "b"), {}),
        (TRAINING.annotate(PRODUCT, "NVIDIA-H20"), {}),
        (TRAINING.gpu(1), {}),
        (TRAINING, {"namespace": "team-a"}),
        (TRAINING, {"cluster": view_of({PRODUCT: "NVIDIA-H20"})}),
    ],
    ids=["a label", "an annotation", "resources", "the namespace", "the namespace's defaults"],
)
def test_another_question_is_asked_anew(pod: PodBuilder, fields: dict[str, Any]) -> None:
    decisions = DecisionCache()
    first = decided(decisions, TRAINING)

    assert decided(decisions, pod, **fields) is not first
    assert decided(decisions, TRAINING) is first


def test_warnings_about_the_cluster_are_those_of_its_newest_snapshot() -> None:
    """The first one has no node with the product."""
    product = {USAGE: "training", "nvidia.com/gpu.product": "NVIDIA-B300"}
    renewed = snapshot_from_documents([Document("cluster", make_node_object("n", labels=product))])
    decisions, asked = DecisionCache(), TRAINING.annotate(PRODUCT, "NVIDIA-B300")
    for cluster in (VIEW, replace(VIEW, snapshot=renewed, assumed=AssumedPods(renewed))):
        assert decided(decisions, asked, cluster=cluster) == decided(DecisionCache(), asked, cluster=cluster)


@pytest.mark.parametrize("pod", [TRAINING, TRAINING.gpu(9)], ids=["a pod that fits", "a pod that does not fit"])
def test_warnings_about_the_cluster_change_though_the_placement_is_the_same(pod: PodBuilder) -> None:
    """Only the evidence of schedulers changes, on which no placement depends."""
    decisions, scorer, found = DecisionCache(), scheduler_for(POLICY), []
    shows, shows_none = SchedulerEvidence(frozenset(), "volcano"), SchedulerEvidence(frozenset(), "")
    for evidence in (None, shows_none, shows, shows_none):
        snapshot = replace(VIEW.snapshot, scheduler_evidence=evidence)
        cluster = replace(VIEW, scorer=scorer, snapshot=snapshot, assumed=AssumedPods(snapshot))
        for _time in range(2):
            rendered = decided(decisions, pod, cluster=cluster)
            assert rendered == decided(DecisionCache(), pod, cluster=cluster)
            found.append(NO_SIGN.encode() in rendered.record.decided)
    assert found == [False, False, True, True, False, False, True, True]


@pytest.mark.parametrize(("minute", "reused"), [(1, 1), (2, 0)])
def test_a_placement_that_depends_on_the_time_is_reused_for_a_minute(minute: int, reused: int) -> None:
    reuses: list[None] = []
    decisions, large = DecisionCache(on_reuse=lambda: reuses.append(None)), TRAINING.gpu(9)

    for each in (1, minute):
        decided(decisions, large, cluster=replace(VIEW, minute=each))

    assert len(reuses) == reused


@pytest.mark.parametrize(("reserves", "nodes"), [(False, 1), (True, 4)])
def test_equal_pods_share_a_node_unless_room_is_reserved_for_them(reserves: bool, nodes: int) -> None:
    """Of nodes with equal scores, each pod with room has one by its own name."""
    equal = [make_node_object(f"n{n}", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 8}) for n in range(4)]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in equal)
    assumed = AssumedPods[Any](snapshot)
    cluster = ClusterView(snapshot, Scheduler(), assumed=assumed, reserves=lambda _: reserves)
    decisions, equal_pods = DecisionCache(), [make_pod(f"pod-{n}").annotate(TYPE, "training") for n in range(32)]

    found = [decided(decisions, each, cluster=cluster).placement for each in equal_pods]

    assert len({each.node for each in found if each is not None}) == nodes


def test_what_nobody_reads_makes_no_other_question() -> None:
    """The API server gives each pod a token volume with a name of its own."""
    decisions = DecisionCache()

    def with_token(name: str) -> PodBuilder:
        mount = {"name": name, "mountPath": "/var/run/secrets"}
        containers = [{"name": "main", "image": "x", "volumeMounts": [mount], "env": [{"name": "A", "value": name}]}]
        return TRAINING.spec(volumes=[{"name": name, "projected": {"sources": []}}], containers=containers)

    first, second = (decided(decisions, with_token(f"kube-api-access-x{number}")) for number in (1, 2))

    assert first is second


def test_a_claim_makes_another_question() -> None:
    decisions = DecisionCache()
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}

    assert decided(decisions, TRAINING.spec(volumes=[claim])) is not decided(decisions, TRAINING)


def test_another_policy_of_the_name_forgets_everything() -> None:
    decisions = DecisionCache()
    before = decided(decisions, TRAINING)

    other = decided(decisions, TRAINING, policy_with(keyDomain="example.com"))

    assert other.outcome == "Bypassed"
    after = decided(decisions, TRAINING)
    assert after == before
    assert after is not before


def test_the_canary_decides_by_the_names_of_equal_pods_without_an_owner() -> None:
    decisions, canary = DecisionCache(), policy_with(canaryPercent=50)
    pods = [make_pod(f"pod-{number}").annotate(TYPE, "training") for number in range(20)]
    alone = [decided(DecisionCache(), each, canary).answer for each in pods]

    assert [decided(decisions, each, canary).answer for each in pods] == alone
    assert {bool(each.patch) for each in alone} == {True, False}


def test_only_what_fits_the_budget_is_remembered_the_last_asked_first() -> None:
    measuring = DecisionCache()
    kinds = [TRAINING.label("kind", str(number)) for number in range(6)]
    decided(measuring, kinds[0])
    # Five eighths of the budget are for decisions.
    decisions = DecisionCache(5 * measuring.caches["decisions"][0].used_bytes * 8 // 5 + 8)
    first, second, *_ = [decided(decisions, kind) for kind in kinds[:5]]
    assert decided(decisions, kinds[0]) is first

    decided(decisions, kinds[5])

    caches = [cache for group in decisions.caches.values() for cache in group]
    assert all(cache.used_bytes <= cache.budget_bytes for cache in caches)
    assert decided(decisions, kinds[0]) is first
    assert decided(decisions, kinds[1]) is not second


def test_a_pod_that_cannot_be_written_back_is_judged_all_the_same() -> None:
    """JSON is read deeper than it is written."""
    deep = orjson.loads('{"a":' * 500 + "1" + "}" * 500)
    pod = TRAINING.obj()
    pod["spec"]["later"] = deep

    rendered = DecisionCache().decide(make_request(pod), POLICY, VIEW, make_work_budget())

    assert rendered.outcome == "Patched"


@pytest.mark.slow
def test_large_pods_are_forgotten_before_they_fill_the_process() -> None:
    """An API server takes pods up to 3 MiB, from everybody who may create pods; the container has 512 MiB."""
    decisions = DecisionCache()
    first, *others = [
        TRAINING.spec(nodeSelector={f"key-{number}-{each}": "value" for each in range(1000)}) for number in range(64)
    ]
    before = decided(decisions, first)
    assert decided(decisions, first) is before

    for pod in others:
        decided(decisions, pod)

    assert decided(decisions, first) is not before


@pytest.mark.parametrize("has_view", [False, True])
def test_nothing_holds_on_to_a_large_pod_that_has_been_answered(has_view: bool) -> None:
    text = "x" * 2**20
    request = make_request(TRAINING.spec(hostname=text).obj())
    decisions = DecisionCache()
    before = sys.getrefcount(text)

    decisions.decide(request, POLICY, VIEW if has_view else None, make_work_budget())

    assert sys.getrefcount(text) == before


def test_nothing_holds_on_to_a_body_that_has_been_answered() -> None:
    body = review_bytes(TRAINING.obj())
    decisions = DecisionCache()
    before = sys.getrefcount(body)

    first, second = (decisions.decide(parse_review(body), POLICY, VIEW, make_work_budget()) for _ in range(2))

    assert first is second
    assert sys.getrefcount(body) == before


def test_what_is_read_of_a_pod_later_counts_too() -> None:
    """While the view is stale, nothing is read for the scheduler."""
    decisions, stale = DecisionCache(), replace(VIEW, stale_reason="no answer for 300 s")
    decided(decisions, TRAINING, cluster=stale)
    before = decisions.known.used_bytes

    decided(decisions, TRAINING)
    after = decisions.known.used_bytes
    decided(decisions, TRAINING)

    assert before < after == decisions.known.used_bytes


@pytest.mark.slow
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
    asked = [evaluated(pod) for pod in (stored, stored.status(nominatedNodeName="a"))]
    assert all(isinstance(each, Mutated) for each in asked)
    assert len({each.signature for each in asked if isinstance(each, Mutated)}) == 1


@given(pods(), pods())
def test_a_decision_behind_a_pod_that_differs_in_containers_is_that_without_memory(
    first: Object, second: Object
) -> None:
    decisions = DecisionCache()
    mixed = first | {"spec": first["spec"] | {"containers": second["spec"]["containers"]}}

    for pod in (first, mixed):
        same_as_alone(decisions, pod)


@given(pods(), pods())
def test_pods_that_differ_in_containers_have_the_signature_that_is_read_of_each(first: Object, second: Object) -> None:
    content = PodContent(make_request(first), {})
    mixed = first | {"spec": first["spec"] | {"containers": second["spec"]["containers"]}}
    before, after = (evaluate(each, POLICY) for each in (content, PodContent(make_request(mixed), {})))
    assume(isinstance(before, Mutated) and isinstance(after, Mutated))
    assert isinstance(before, Mutated)
    assert isinstance(after, Mutated)
    assume(before.injection.operations == after.injection.operations)
    assert isinstance(before.signature, PodSignature)

    after.like = before.signature

    assert after.signature == PodSignature.of(after.created)


def test_defaults_of_a_limit_range_are_those_of_the_pod_itself_behind_one_that_differs_in_containers() -> None:
    noted = TRAINING.annotate(LIMIT_RANGER, "LimitRanger plugin set: cpu request for container main")
    decisions = DecisionCache()
    decided(decisions, noted)

    candidate = decided(decisions, noted.requests(cpu="1")).candidate

    assert candidate is not None
    assert candidate.pod.signature.info.defaulted == ("cpu",)


def test_defaults_of_a_namespace_apply_by_what_the_pod_requests_not_by_an_equal_pod() -> None:
    """Whether a pod requests a card follows from the names of its resources and from `spec.resourceClaims`."""
    decisions, view = DecisionCache(), view_of({TYPE: "inference"})
    pods_by_request = {
        "nothing": make_pod(),
        "a card": make_pod().gpu(1),
        "a claim": make_pod().spec(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}]),
    }

    outcomes = {name: decided(decisions, pod, cluster=view).outcome for name, pod in pods_by_request.items()}

    assert outcomes == {"nothing": "Bypassed", "a card": "Patched", "a claim": "Patched"}


@pytest.mark.parametrize("amount", ["many", None, {}, [1]])
def test_a_malformed_amount_of_cards_is_no_request(amount: object) -> None:
    pod = make_pod().spec(containers=[{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": amount}}}])

    assert decided(DecisionCache(), pod, cluster=view_of({TYPE: "inference"})).outcome == "Bypassed"


def test_each_product_counts_with_its_name() -> None:
    used_bytes = []
    for product in ("NVIDIA-H20", "NVIDIA-H20-of-a-long-name"):
        decisions = DecisionCache()
        decided(decisions, TRAINING.annotate(PRODUCT, product), cluster=None)
        used_bytes.append(decisions.caches["decisions"][1].used_bytes)

    assert used_bytes[1] - used_bytes[0] == len("-of-a-long-name")


@pytest.mark.parametrize("field", ["name", "generateName"])
def test_a_name_of_the_wrong_type_is_rejected_behind_an_equal_pod_too(field: str) -> None:
    decisions = DecisionCache()
    pod = TRAINING.obj()
    wrong = {**pod, "metadata": {**pod["metadata"], field: 5}}

    assert decided(decisions, TRAINING).outcome == "Patched"
    with pytest.raises(InvalidInput, match=rf"metadata\.{field}"):
        decisions.decide(make_request(wrong), POLICY, VIEW, make_work_budget())


def test_a_limit_of_cards_holds_behind_a_pod_that_differs_in_amounts_alone() -> None:
    decisions = DecisionCache()
    policy = policy_with(namespaceLimits=[{"namespaces": ["*"], "maxCardsPerPod": 1}])

    outcomes = [decided(decisions, TRAINING.gpu(cards), policy).outcome for cards in (1, 2, 1)]

    assert outcomes == ["Patched", "Denied", "Patched"]
