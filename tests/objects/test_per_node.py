"""A DaemonSet is held to the policy when it is written, because its pods are neither changed nor checked."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.mutation.edits import node_edits
from webhook.mutation.edits.edits import LARGEST_GROWTH_BYTES
from webhook.objects.admission import admit_request

LIMITS = {"namespaces": ["lab"], "queues": ["lab"], "maxCardsPerPod": 1, "products": ["NVIDIA-L4"]}
CARD = "nvidia.com/gpu.product"
SPEC = "spec.template.spec"
IN_LAB = 'namespace "lab" may not'


def view(**defaults: str) -> ClusterView:
    """Return a view in which the namespace `lab` has these defaults."""
    annotations = {f"{DOMAIN}/{key.replace('_', '-')}": value for key, value in defaults.items()}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": annotations}}
    return ClusterView(snapshot_from_documents([Document("c", namespace), Document("c", make_node_object("n1"))]), None)


def daemon_set(pod: PodBuilder, **metadata: Any) -> dict[str, Any]:
    content = {"selector": {"matchLabels": {"app": "a"}}, "template": pod.label("app", "a").template()}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", **metadata}, "spec": content}


def admitted(obj: dict[str, Any], cluster: ClusterView, *, old: dict[str, Any] | None = None, **policy: Any) -> Any:
    request = make_request(
        obj,
        namespace="lab",
        kind="DaemonSet",
        group=obj["apiVersion"].partition("/")[0],
        resource="",
        name="a",
        operation="UPDATE" if old else "CREATE",
        old_object=old,
    )
    limits = {"namespaceLimits": [LIMITS], "placementCheck": {"floor": "deny"}}
    return admit_request(request, policy_with(**(limits | policy)), cluster)


def required(*expressions: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
    listed = [{"key": key, "operator": "In", "values": list(values)} for key, values in expressions]
    terms = {"nodeSelectorTerms": [{"matchExpressions": listed}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


COMPLETE = required((USAGE, ("inference", "hybrid")), (CARD, ("NVIDIA-L4",)))
INFERENCE = make_pod("").annotate(TYPE, "inference")


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (INFERENCE.gpu(8), f"{SPEC}.containers: Forbidden: {IN_LAB} request 8 cards in a pod"),
        (INFERENCE.annotate(PRODUCT, "NVIDIA-H20"), f'{IN_LAB} ask for product "NVIDIA-H20"'),
        (INFERENCE.annotate(f"{DOMAIN}/queue", "other"), f'{IN_LAB} use queue "other"'),
        (INFERENCE.gpu(8).annotate(f"{DOMAIN}/inject", "disabled"), f"{IN_LAB} request 8 cards in a pod"),
        (INFERENCE.gpu(8).node_name("n1"), f"{IN_LAB} request 8 cards in a pod"),
        (
            INFERENCE.gpu(8).node_name("n1").annotate("kubernetes.io/config.mirror", "x"),
            f"{IN_LAB} request 8 cards in a pod",
        ),
    ],
    ids=["cards", "product", "queue", "opted out below the floor", "named node", "named node as a mirror pod"],
)
def test_a_daemon_set_beyond_the_limits_is_denied(pod: PodBuilder, wanted: str) -> None:
    verdict = admitted(daemon_set(pod), view())

    assert isinstance(verdict, Denied)
    assert verdict.denial.code == 403
    assert wanted in verdict.denial.message


def test_a_daemon_set_must_have_what_the_default_type_requires() -> None:
    lab = view(workload_type="inference")
    bare = admitted(daemon_set(make_pod("").gpu(1)), lab)

    assert isinstance(bare, Denied)
    assert bare.denial.message == (
        f"{SPEC}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: Forbidden: nothing is injected "
        'into the pods of a DaemonSet, so it must itself have what workload type "inference" requires: '
        f"{USAGE} in [inference, hybrid], {CARD} in [NVIDIA-L4]"
    )
    assert isinstance(admitted(daemon_set(make_pod("").gpu(1).spec(affinity=COMPLETE)), lab), Bypassed)


@pytest.mark.parametrize(
    ("selector", "affinity", "missing"),
    [
        ({USAGE: "inference", CARD: "NVIDIA-L4"}, None, ""),
        ({USAGE: "hybrid"}, required((CARD, ("NVIDIA-L4",))), ""),
        ({USAGE: "hybrid"}, None, f"{CARD} in [NVIDIA-L4]"),
        ({USAGE: "training", CARD: "NVIDIA-L4"}, None, f"{USAGE} in [inference, hybrid]"),
        ({USAGE: "training"}, COMPLETE, ""),
    ],
    ids=["alone", "beside affinity", "in part", "another pool", "no node"],
)
def test_a_node_selector_counts_as_required_affinity(selector: Any, affinity: Any, missing: str) -> None:
    pod = make_pod("").gpu(1).spec(nodeSelector=selector, affinity=affinity)
    verdict = admitted(daemon_set(pod), view(workload_type="inference"))

    lacking = verdict.denial.message.partition("requires: ")[2] if isinstance(verdict, Denied) else ""
    assert lacking == missing


@pytest.mark.parametrize(
    ("count", "selector"),
    [
        pytest.param(2_000, {}, id="for what the policy requires"),
        pytest.param(1_500, {USAGE: "x" * 63}, id="for the nodeSelector beside it"),
    ],
)
def test_more_terms_than_a_pod_may_have_hide_nothing(
    count: int, selector: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requirements of a pod with so many terms cannot be computed."""
    monkeypatch.setattr(node_edits, "LARGEST_GROWTH_BYTES", LARGEST_GROWTH_BYTES // 10)
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * count
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = make_pod("").gpu(1).spec(affinity=affinity, nodeSelector=selector)
    verdict = admitted(daemon_set(pod), view(workload_type="inference"))

    assert isinstance(verdict, Denied)
    assert "too many terms" in verdict.denial.message
    # Where no type is required, nothing is.
    assert isinstance(admitted(daemon_set(pod.annotate(TYPE, "inference")), view()), Bypassed)


def test_a_controller_that_a_user_names_does_not_hide_a_daemon_set() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1", "controller": True}

    assert isinstance(admitted(daemon_set(INFERENCE.gpu(8), ownerReferences=[owner]), view()), Denied)


ADVANCED = {
    "group": "apps.kruise.io",
    "kind": "DaemonSet",
    "resource": "daemonsets",
    "templates": [{"path": "spec.template"}],
}


def test_a_daemon_set_of_another_api_group_is_held_to_the_same() -> None:
    advanced = daemon_set(make_pod("").gpu(1)) | {"apiVersion": "apps.kruise.io/v1alpha1"}

    assert isinstance(admitted(advanced, view(workload_type="inference"), workloadKinds=[ADVANCED]), Denied)


def test_pods_are_left_alone_if_their_daemon_set_is_held_to_the_policy() -> None:
    pod = INFERENCE.gpu(8).owner("DaemonSet", "a", api_version="apps.kruise.io/v1alpha1")
    request = make_request(pod.obj(), namespace="lab")
    known, unknown = (
        admit_request(request, policy_with(namespaceLimits=[LIMITS], workloadKinds=kinds), None)
        for kinds in ([ADVANCED], [])
    )

    assert known == Bypassed("pod of a DaemonSet")
    assert isinstance(unknown, Denied)
    assert f"{IN_LAB} request 8 cards in a pod" in unknown.denial.message


@pytest.mark.parametrize(
    "pod",
    [make_pod(""), make_pod("").gpu(8), make_pod("").annotate(TYPE, "inference").gpu(1)],
    ids=["no card", "no type, where the namespace has none either", "a type of its own, which it could leave out"],
)
def test_other_daemon_sets_are_left_alone(pod: PodBuilder) -> None:
    verdict = admitted(daemon_set(pod), view())
    assert isinstance(verdict, Bypassed)
    assert verdict.reason == "its pods run on every node and are left alone"


@pytest.mark.parametrize(
    ("cards", "require", "verdict"), [(1, "deny", Denied), (1, None, Bypassed), (0, "deny", Bypassed)]
)
def test_a_daemon_set_with_cards_needs_a_type_if_pods_with_cards_do(
    cards: int, require: str | None, verdict: type
) -> None:
    pod = make_pod("").gpu(cards) if cards else make_pod("")
    policy: dict[str, Any] = {"requireType": require} if require else {}
    assert isinstance(admitted(daemon_set(pod), view(), **policy), verdict)


@pytest.mark.parametrize("spec", [None, 5, [], "x"])
def test_a_daemon_set_without_a_pod_spec_is_left_to_the_api_server(spec: object) -> None:
    content = daemon_set(INFERENCE)
    content["spec"]["template"]["spec"] = spec
    assert isinstance(admitted(content, view()), Bypassed)


def test_an_agent_without_cards_is_left_alone_in_a_namespace_with_a_default_type() -> None:
    assert isinstance(admitted(daemon_set(make_pod("")), view(workload_type="inference")), Bypassed)


def test_what_a_stored_daemon_set_lacks_blocks_no_other_change() -> None:
    stored = daemon_set(make_pod("").gpu(8))
    lab = view(workload_type="inference")

    assert isinstance(admitted(daemon_set(make_pod("").gpu(8).label("v", "2")), lab, old=stored), Bypassed)


def test_a_lenient_policy_warns() -> None:
    verdict = admitted(daemon_set(INFERENCE.gpu(8)), view(), invalidAnnotations="warn")

    assert isinstance(verdict, Bypassed)
    assert any("may not request 8 cards in a pod" in each for each in verdict.warnings)
