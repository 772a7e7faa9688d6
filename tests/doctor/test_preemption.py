"""The PriorityClasses of workload types that share a pool, and the gangs that kube-scheduler can evict."""

from dataclasses import replace
from typing import Any

import pytest

from placement_doctor.check import Severity
from placement_doctor.cluster import Cluster, Unprotected
from placement_doctor.kept import PodsRead, kept
from placement_doctor.source import Source
from tests.doctor.healthy import commands_of, found, make_installation, named, objects
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.manifests import Object
from webhook.policy.policy import Policy

TYPE, GANG = "maip.mxsf.io/workload-type", "maip.mxsf.io/gang"
NEVER = {"preemptionPolicy": "Never"}
GANGS = {("team-a", "training"): Unprotected("train-0", 3)}


def priority_class(name: str, value: int, **fields: Any) -> Object:
    return {**named(name), "value": value, **fields}


def policy_of(training: str | None, inference: str | None, pools: tuple[str, ...] = ("hybrid",), **of: Any) -> Policy:
    """Return the policy whose types have these classes and pools; `of` are more fields of inference."""
    fields = {"nodeUsage": {"allow": ["training", *pools]}, "priorityClassName": training}
    other = {"nodeUsage": {"allow": ["inference", *pools]}, "priorityClassName": inference}
    return policy_with(workloadTypes={"training": fields, "inference": {**other, **of}})


def installation(policy: Policy, *classes: Object, **fields: Any) -> Cluster:
    read = {**objects(), Source.PRIORITY_CLASSES: classes}
    return make_installation(policy=policy, objects=read, trial=None, **fields)


BOTH = priority_class("batch", 100), priority_class("online", 1000)


@pytest.mark.parametrize(
    ("policy", "classes"),
    [
        pytest.param(policy_of("batch", "online"), BOTH, id="inference above"),
        pytest.param(policy_of("online", "online"), BOTH, id="the same class"),
        pytest.param(policy_of(None, None), BOTH, id="no classes"),
        pytest.param(policy_of("online", "batch", pools=()), BOTH, id="no pool in common"),
        pytest.param(policy_of("online", "gone"), BOTH, id="a class that does not exist"),
    ],
)
def test_classes_that_hinder_no_eviction_are_no_fault(policy: Policy, classes: tuple[Object, ...]) -> None:
    assert found(installation(policy, *classes), "preemption") == []


def test_training_above_inference_is_found() -> None:
    (finding,) = found(installation(policy_of("online", "batch"), *BOTH), "preemption")

    assert (finding.severity, finding.where) == (
        Severity.WARNING,
        "policy: spec.workloadTypes.training.priorityClassName",
    )
    assert finding.what == (
        "online (1000) of training is above batch (100) of inference: "
        "pods of inference evict no pod of training in hybrid"
    )
    assert finding.remedy.endswith(" with N above 1000, and name it for inference")
    assert commands_of(finding.remedy) == [["kubectl", "create", "priorityclass", "NAME", "--value=N"]]


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        pytest.param((priority_class("low", -1),), "the default priority 0 of training is above low (-1)", id="none"),
        pytest.param(
            (priority_class("low", -1), priority_class("all", 5, globalDefault=True)),
            "all (5) of training is above low (-1)",
            id="the cluster's",
        ),
    ],
)
def test_a_type_without_a_class_has_the_default(classes: tuple[Object, ...], shown: str) -> None:
    (finding,) = found(installation(policy_of(None, "low"), *classes), "preemption")

    assert finding.where == "policy: spec.workloadTypes.inference.priorityClassName"
    assert finding.what.startswith(shown)


def test_a_class_of_inference_that_never_preempts_is_found() -> None:
    classes = priority_class("batch", 100), priority_class("online", 1000, **NEVER)
    (finding,) = found(installation(policy_of("batch", "online"), *classes), "preemption")

    assert (finding.severity, finding.where) == (Severity.WARNING, "PriorityClass online: preemptionPolicy")
    assert finding.what == "Never, and it is immutable: pods of inference evict no pod of training in hybrid"
    assert commands_of(finding.remedy) == [["kubectl", "create", "priorityclass", "NAME", "--value=1000"]]


def test_never_of_training_is_no_fault() -> None:
    classes = priority_class("batch", 100, **NEVER), priority_class("online", 1000)
    assert found(installation(policy_of("batch", "online"), *classes), "preemption") == []


@pytest.mark.parametrize("malformed", [0, 1, 2], ids=["first", "second", "last"])
def test_a_malformed_class_is_passed_over(malformed: int) -> None:
    classes = [priority_class("batch", 100), priority_class("online", 1000)]
    classes.insert(malformed, {**named("idle"), "value": "many"})
    assert found(installation(policy_of("batch", "online"), *classes), "preemption") == []
    assert found(installation(policy_of("batch", "idle"), *classes), "preemption") == []
    assert len(found(installation(policy_of("online", "batch"), *classes), "preemption")) == 1


def test_classes_that_were_not_read_are_no_fault() -> None:
    read = {source: found for source, found in objects().items() if source is not Source.PRIORITY_CLASSES}
    unread = make_installation(policy=policy_of("online", "batch"), objects=read, trial=None)
    assert found(unread, "preemption") == []


def test_a_gang_without_a_budget_that_inference_evicts_is_a_note() -> None:
    (finding,) = found(installation(policy_of("batch", "online"), *BOTH, unprotected=GANGS), "preemption")

    assert (finding.severity, finding.where) == (Severity.INFO, "Namespace team-a: pods of training")
    assert finding.what.startswith(
        "3 pods of gangs are selected by no PodDisruptionBudget, such as train-0: "
        "kube-scheduler can evict one of a gang for inference"
    )
    assert commands_of(finding.remedy)[0][:6] == ["kubectl", "-n", "team-a", "create", "poddisruptionbudget", "NAME"]


@pytest.mark.parametrize(
    ("policy", "classes"),
    [
        pytest.param(policy_of("online", "online"), BOTH, id="equal"),
        pytest.param(
            policy_of("batch", "online", schedulerName="volcano"), BOTH, id="of Volcano, which evicts its own"
        ),
        pytest.param(policy_of("batch", "online", pools=()), BOTH, id="no pool in common"),
    ],
)
def test_a_gang_that_no_type_evicts_needs_no_budget(policy: Policy, classes: tuple[Object, ...]) -> None:
    assert found(installation(policy, *classes, unprotected=GANGS), "preemption") == []


def unprotected(*pods: PodBuilder, budgets: tuple[Object, ...] | None = ()) -> dict[tuple[str, str], Unprotected]:
    """Return what is kept of `pods`, all in team-a, beside `budgets`."""
    read = {**objects(), Source.ALL_BUDGETS: budgets or ()}
    if budgets is None:
        del read[Source.ALL_BUDGETS]
    pods_read = PodsRead.of(replace(make_installation(), objects=read))
    for pod in pods:
        pods_read.add(pod.namespace("team-a").obj())
    return pods_read.unprotected


def budget(namespace: str = "team-a", **selector: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": "train"}, **selector}, "maxUnavailable": 0}
    return kept(Source.ALL_BUDGETS, {"metadata": {"name": "b", "namespace": namespace}, "spec": spec})


WORKER = make_pod("w-0").annotate(TYPE, "training").label("app", "train").node_name("n").scheduler("default-scheduler")
IN_GANG = WORKER.annotate(GANG, "g")


@pytest.mark.parametrize(
    ("budgets", "number"),
    [
        pytest.param((), 2, id="none"),
        pytest.param((budget("team-b"),), 2, id="of another namespace"),
        pytest.param((budget(matchLabels={"app": "web"}),), 2, id="of other pods"),
        pytest.param(({"metadata": {"name": "b"}, "spec": {"selector": 7}},), 2, id="malformed"),
        pytest.param((budget(),), 0, id="of these pods"),
        pytest.param(None, 0, id="not known"),
    ],
)
def test_pods_of_gangs_are_counted_that_no_budget_selects(budgets: tuple[Object, ...] | None, number: int) -> None:
    kept_pods = unprotected(IN_GANG, IN_GANG, budgets=budgets)
    assert kept_pods == ({("team-a", "training"): Unprotected("w-0", number)} if number else {})


@pytest.mark.parametrize(
    ("pod", "number"),
    [
        pytest.param(WORKER, 0, id="of no gang"),
        pytest.param(make_pod("w-0").annotate(GANG, "g").node_name("n").scheduler("volcano"), 0, id="of no type"),
        pytest.param(
            make_pod("w-0").annotate(TYPE, "training").annotate(GANG, "g").scheduler("volcano"), 0, id="waits"
        ),
        pytest.param(
            WORKER.scheduler("volcano").annotate("scheduling.k8s.io/group-name", "g"), 1, id="of a PodGroup of Volcano"
        ),
    ],
)
def test_only_bound_pods_of_gangs_of_a_type_count(pod: PodBuilder, number: int) -> None:
    assert sum(each.number for each in unprotected(pod).values()) == number
