"""A pod keeps nothing that was injected into its template while its namespace had the right to it."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import SAMPLES
from tests.support.patch_checks import check_pod_patch, check_template_patch
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit
from webhook.admission.pod_content import PodContent
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.api.json_patch import patched
from webhook.mutation.mutate import Mutation, RuleOutcome
from webhook.mutation.withdrawal import withdrawal
from webhook.objects.admission import admit_request
from webhook.policy.policy import WITHDRAWAL

GRANTED = policy_with(workloadObjects={"mutateTemplates": True})
OWN = {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
POD = make_pod("p").gpu(1).annotate(PRODUCT, "NVIDIA-H20").spec(tolerations=[OWN])
TYPED = POD.annotate(TYPE, "training")
REVOKED: dict[str, dict[str, Any]] = {
    "type": {"workloadTypes": ["inference"]},
    "product": {"products": ["NVIDIA-L4"]},
    "cards": {"maxCardsPerPod": 0},
}


def revoked(limits: dict[str, Any], **spec: Any) -> Any:
    lenient = {"invalidAnnotations": "warn", "workloadObjects": {"mutateTemplates": True}}
    return policy_with(namespaceLimits=[{"namespaces": ["lab"], **limits}], **(lenient | spec))


def view(**annotations: str) -> ClusterView:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": annotations}}
    objects = (namespace, make_node_object("n1"))
    return ClusterView(snapshot_from_documents([Document("c", each) for each in objects]), None)


def admitted(pod: dict[str, Any], policy: Any, cluster: ClusterView | None = None) -> Any:
    return admit(make_request(pod, namespace="lab"), policy, cluster)


def tolerated(pod: dict[str, Any]) -> set[str]:
    return {each["key"] for each in pod["spec"]["tolerations"]}


def injected(pod: dict[str, Any], cluster: ClusterView | None = None) -> dict[str, Any]:
    """Return the pod of a template that was patched while the namespace had every right."""
    verdict = admitted(pod, GRANTED, cluster)
    assert verdict.outcome == "Patched"
    return patched(pod, verdict.operations)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        pytest.param(REVOKED["type"], {OWN["key"]}, id="type"),
        pytest.param(REVOKED["product"], {OWN["key"], USAGE}, id="product"),
        pytest.param(REVOKED["cards"], {OWN["key"]}, id="cards"),
    ],
)
def test_tolerations_of_a_template_end_with_the_right_to_them(limits: dict[str, Any], allowed: set[str]) -> None:
    policy, pod = revoked(limits), injected(TYPED.obj())
    verdict = admitted(pod, policy)

    assert verdict.outcome == "Patched"
    assert tolerated(verdict.pod) == allowed
    assert verdict.pod["spec"]["affinity"] == pod["spec"]["affinity"]
    assert any("Forbidden" in each for each in verdict.warnings)
    assert admitted(verdict.pod, policy).outcome == ("Unchanged" if allowed - {OWN["key"]} else "Bypassed")


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_tolerations_that_are_still_due_are_not_taken_back(missing: int) -> None:
    """The product, which is forbidden, was added to the template since, and some tolerations are due since."""
    policy = revoked({"products": ["NVIDIA-L4"]}, tolerateAnyProduct=False)
    without_product = make_pod("p").gpu(1).annotate(TYPE, "training").obj()
    pod = admitted(without_product, policy_with(tolerateAnyProduct=False)).pod
    pod["metadata"]["annotations"][PRODUCT] = "NVIDIA-H20"
    due = pod["spec"]["tolerations"]
    pod["spec"]["tolerations"] = due[: len(due) - missing]
    verdict = admitted(pod, policy)

    assert len(due) > 1
    assert any("Forbidden" in each for each in verdict.warnings)
    assert verdict.pod["spec"]["tolerations"] == due
    assert WITHDRAWAL not in verdict.pod["metadata"]["annotations"][policy.rules_annotation]


@pytest.mark.parametrize("limits", REVOKED.values(), ids=REVOKED)
def test_the_patch_gives_what_was_judged(limits: dict[str, Any]) -> None:
    policy, pod = revoked(limits), injected(TYPED.obj())

    check_pod_patch(PodContent(make_request(pod, namespace="lab"), {}), admitted(pod, policy).operations, policy)


@pytest.mark.parametrize("handling", ["deny", "warn"])
def test_a_default_type_that_the_namespace_lost_leaves_no_tolerations(handling: str) -> None:
    """A default denies no pod."""
    lab = view(**{TYPE: "training"})
    policy = revoked({"workloadTypes": ["inference"]}, invalidAnnotations=handling)
    verdict = admitted(injected(POD.obj(), lab), policy, lab)

    assert verdict.outcome == "Patched"
    assert verdict.pod["spec"]["tolerations"] == [OWN]


def test_what_a_user_wrote_is_kept() -> None:
    """The webhook has injected nothing into this pod."""
    verdict = admitted(
        TYPED.spec(tolerations=[OWN, {"key": f"{DOMAIN}/node.usage", "value": "training"}]).obj(),
        revoked({"workloadTypes": ["inference"]}),
    )

    assert isinstance(verdict, Bypassed)


def test_tolerations_with_another_effect_than_the_injected_ones_are_kept() -> None:
    pod = injected(TYPED.obj())
    own = {"key": USAGE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    pod["spec"]["tolerations"].append(own)

    verdict = admitted(pod, revoked({"workloadTypes": ["inference"]}))

    assert verdict.outcome == "Patched"
    assert verdict.pod["spec"]["tolerations"] == [OWN, own]


def test_a_strict_policy_denies_the_pod() -> None:
    policy = revoked({"workloadTypes": ["inference"]}, invalidAnnotations="deny")

    assert isinstance(admitted(injected(TYPED.obj()), policy), Denied)


def test_the_template_loses_them_when_it_is_written() -> None:
    sample = next(each for each in SAMPLES if each.kind == "Deployment")
    deployment = sample.object({key: injected(TYPED.obj())[key] for key in ("metadata", "spec")})
    request = make_request(
        deployment, namespace="lab", kind="Deployment", group="apps", resource="deployments", name="web"
    )
    policy = revoked({"workloadTypes": ["inference"]})
    verdict: Any = admit_request(request, policy, None)

    assert patched(deployment, verdict.operations)["spec"]["template"]["spec"]["tolerations"] == [OWN]
    check_template_patch(request, verdict.operations, policy)


_MARKS = GRANTED.policy_annotation, GRANTED.rules_annotation


@pytest.mark.parametrize(
    ("policy", "rules", "is_taken_back"),
    [
        ("default@old", "NodeUsageAffinity", True),
        ("default@old", "", False),
        ("default@old", None, False),
        (None, "NodeUsageAffinity", True),
        (GRANTED.identity, "NodeUsageAffinity", False),
        ("default@old", WITHDRAWAL, False),
        ("default@old", f"{WITHDRAWAL},NodeUsageAffinity", False),
    ],
)
@pytest.mark.parametrize("is_tolerating", [True, False])
def test_only_what_another_revision_has_injected_is_taken_back(
    policy: str | None, rules: str | None, *, is_taken_back: bool, is_tolerating: bool
) -> None:
    pools = [
        {"key": USAGE, "value": "training", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu.product", "operator": "Exists", "effect": "NoSchedule"},
    ]
    kept = [OWN, {**pools[0], "effect": "NoExecute"}, {"key": USAGE, "operator": "Exists"}, {"operator": "Exists"}]
    pod = make_pod("p").spec(tolerations=[kept[0], pools[0], *kept[1:], pools[1]] if is_tolerating else kept)
    for key, value in zip(_MARKS, (policy, rules), strict=True):
        pod = pod.annotate(key, value) if value is not None else pod
    found = withdrawal(pod.obj(), GRANTED)

    assert (found is not None) is is_taken_back
    if found is None:
        return
    assert found.pod["spec"]["tolerations"] == kept
    assert patched(pod.obj(), found.operations) == found.pod
    assert found.pod["metadata"]["annotations"][_MARKS[1]] == WITHDRAWAL
    number = 2 if is_tolerating else 0
    assert [each["path"] for each in found.operations if "tolerations" in each["path"]] == (
        ["/spec/tolerations"] if number else []
    )
    assert found.rules == (RuleOutcome(WITHDRAWAL, (f"remove {number} injected tolerations of node pools and cards",)),)


def test_of_two_mutations_one_after_the_other_nothing_is_lost() -> None:
    first, second = (
        Mutation({"n": n}, [{"op": "add", "path": f"/{n}", "value": n}], (RuleOutcome(n),), (f"warning {n}",))
        for n in ("1", "2")
    )
    operations, rules = [*first.operations, *second.operations], (*first.rules, *second.rules)

    assert first.followed_by(second) == Mutation({"n": "2"}, operations, rules, ("warning 1", "warning 2"))
