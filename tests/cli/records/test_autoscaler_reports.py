"""The last reports of Karpenter and Cluster Autoscaler about a pod that waits, from texts of their sources."""

from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from webhook.cli.inputs.existing_objects import FileObjects
from webhook.cli.records.autoscaler_reports import Report, autoscaler_reports
from webhook.documents.documents import Document, JsonObject

POD = make_pod("train-0").namespace("team-a").uid("u1").obj() | {"kind": "Pod"}
POD["metadata"]["creationTimestamp"] = "2026-05-01T13:00:00Z"
AT = "2026-05-01T14:05:00Z"
KARPENTER, AUTOSCALER = "karpenter", "cluster-autoscaler"
STATUS_GROUP = """
  - name: {name}
    health: {{cloudProviderTarget: {target}, minSize: 0, maxSize: 8}}
    scaleUp:
      status: {status}
      backoffInfo: {backoff}
      lastProbeTime: "{at}"
      lastTransitionTime: "{since}"
"""


def event(source: str, message: str, reason: str = "FailedScheduling", **of: Any) -> JsonObject:
    involved = {"kind": "Pod", "name": "train-0", "namespace": "team-a", "uid": "u1"}
    metadata = {"name": "e", "namespace": "team-a"}
    fields = {"involvedObject": involved, "metadata": metadata, "type": "Warning", "lastTimestamp": AT}
    return {"apiVersion": "v1", "kind": "Event", "reason": reason, "message": message, **fields} | (
        {"source": {"component": source}} | of
    )


def about(kind: str, name: str, namespace: str, message: str, reason: str, at: str = AT) -> JsonObject:
    """Return an Event about another object than the pod."""
    involved = {"kind": kind, "name": name}
    metadata = {"name": name, "namespace": namespace}
    return event("", message, reason, involvedObject=involved, metadata=metadata, lastTimestamp=at)


def pool(name: str, limits: dict[str, str], used: dict[str, str]) -> JsonObject:
    content = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
    return content | {"spec": {"limits": limits}, "status": {"resources": used}}


def status(*groups: str, text: str = "") -> JsonObject:
    head = f'autoscalerStatus: Running\nclusterWide:\n  health: {{lastProbeTime: "{AT}"}}\nnodeGroups:\n'
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    data = {"status": text or head + "".join(groups)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def group(name: str, target: int, scale_up: str = "NoActivity", backoff: str = "{}", **of: str) -> str:
    times = {"at": AT, "since": "2026-05-01T14:02:00Z"} | of
    return STATUS_GROUP.format(name=name, target=target, status=scale_up, backoff=backoff, **times)


def messages(newest: JsonObject, *objects: JsonObject) -> list[str]:
    known = FileObjects([Document("cluster", each) for each in (newest, *objects)])
    return [each.message for each in autoscaler_reports(known, POD, [newest])]


FULL = pool("gpu-h100", {"nvidia.com/gpu": "64", "cpu": "1k"}, {"nvidia.com/gpu": "64", "cpu": "200"})


@pytest.mark.parametrize(
    "reason",
    [
        'all available instance types exceed limits for nodepool: "gpu-h100"',
        'all available instance types exceed limits for nodepool "gpu-h100"',
        "all available instance types exceed limits for nodepool (NodePool=gpu-h100)",
        "node limits have been exhausted for nodepool (NodePool=gpu-h100)",
    ],
    ids=["1.0", "1.3", "1.14", "1.14, static pool"],
)
def test_a_node_pool_at_its_limit_is_named_with_the_limit(reason: str) -> None:
    """Source: karpenter v1.0.0, v1.3.0, v1.14.1: pkg/controllers/provisioning/scheduling/scheduler.go."""
    failed = event(KARPENTER, f"Failed to schedule pod, {reason}")

    assert messages(failed, FULL) == ["NodePool gpu-h100 is at its limit of 64 nvidia.com/gpu"]


def test_other_reasons_of_karpenter_are_counted_beside_a_limit() -> None:
    other = 'incompatible with nodepool "cpu", daemonset overhead={"pods":"2"}, did not tolerate a=b:NoSchedule'
    limit = "all available instance types exceed limits for nodepool (NodePool=gpu-h100)"
    failed = event(KARPENTER, f"Failed to schedule pod, {other}; {limit}")

    assert messages(failed, FULL)[1:] == ["its Event has the reasons of 1 other NodePool"]


def test_a_limit_that_is_not_reached_is_shown_with_what_is_used() -> None:
    limit = "all available instance types exceed limits for nodepool (NodePool=gpu-h100)"
    failed = event(KARPENTER, f"Failed to schedule pod, {limit}")
    almost = pool("gpu-h100", {"nvidia.com/gpu": "64"}, {"nvidia.com/gpu": "60"})

    text = "the limits of NodePool gpu-h100 leave no room for a node"
    assert messages(failed, almost) == [f"{text} (its status counts 60 of 64 nvidia.com/gpu)"]
    assert messages(failed) == [text]


def test_a_message_of_another_form_is_quoted() -> None:
    text = "Failed to schedule pod, no instance type has enough resources, requirements=a, resources=b"

    assert messages(event(KARPENTER, text)) == [text]
    assert messages(event(AUTOSCALER, "something else", "New")) == ["something else"]


def test_a_node_claim_that_got_no_instance_is_quoted_for_its_pod() -> None:
    nominated = event(KARPENTER, "Pod should schedule on: nodeclaim/gpu-h100-x7k2p", "Nominated")
    text = "NodeClaim gpu-h100-x7k2p event: all requested instance types were unavailable during launch"
    failed = about("NodeClaim", "gpu-h100-x7k2p", "default", text, "InsufficientCapacityError")

    assert messages(nominated, failed) == [nominated["message"], text]


def test_a_node_pool_without_instance_types_is_quoted_if_it_was_after_the_pod() -> None:
    text = "NodePool requirements filtered out all compatible available instance types"
    failed = event(KARPENTER, "Failed to schedule pod, no nodepools")
    late = about("NodePool", "gpu", "default", text, "NoCompatibleInstanceTypes")
    same = about("NodePool", "cpu", "default", text, "NoCompatibleInstanceTypes", POD["metadata"]["creationTimestamp"])
    early = about("NodePool", "old", "default", text, "NoCompatibleInstanceTypes", "2026-05-01T12:00:00Z")

    assert messages(failed, late, same, early) == [
        failed["message"],
        f"NodePool cpu: {text}",
        f"NodePool gpu: {text}",
    ]


def test_node_groups_at_their_maximum_and_in_backoff_are_named() -> None:
    """Source: cluster-autoscaler pkg/core/scaleup/orchestrator/skippedreasons.go, pkg/clusterstate/api/types.go."""
    text = "pod didn't trigger scale-up: 1 max node group size reached, 1 in backoff after failed scale-up"
    backoff = '{errorCode: QUOTA_EXCEEDED, errorMessage: "Quota GPUS exceeded"}'
    known = status(group("ng-a100", 8), group("ng-h100", 2, "Backoff", backoff), group("ng-cpu", 3))

    assert messages(event(AUTOSCALER, text, "NotTriggerScaleUp"), known) == [
        text,
        "node group ng-a100 is at its maximum of 8 nodes",
        "node group ng-h100 is in backoff since 14:02 UTC: QUOTA_EXCEEDED: Quota GPUS exceeded",
    ]


def test_a_maximum_of_one_node_is_singular() -> None:
    text = "pod didn't trigger scale-up: 1 max node group size reached"
    known = status(text="nodeGroups: [{name: ng, health: {cloudProviderTarget: 1, maxSize: 1}}]")

    assert messages(event(AUTOSCALER, text), known)[1:] == ["node group ng is at its maximum of 1 node"]


def test_the_backoff_of_another_day_has_its_date() -> None:
    text = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    known = status(group("ng", 2, "Backoff", since="2026-04-30T23:50:00Z"))

    assert messages(event(AUTOSCALER, text), known)[1:] == ["node group ng is in backoff since 2026-04-30 23:50 UTC"]


def test_only_the_state_that_the_event_reports_is_named() -> None:
    text = "pod didn't trigger scale-up: 2 Insufficient nvidia.com/gpu"

    assert messages(event(AUTOSCALER, text), status(group("ng", 8, "Backoff"))) == [text]


def test_of_many_node_groups_the_first_are_named() -> None:
    text = "pod didn't trigger scale-up: 12 max node group size reached"

    found = messages(event(AUTOSCALER, text), status(*(group(f"ng-{n}", 8) for n in range(12))))

    assert found[-1] == "and 2 more; ConfigMap kube-system/cluster-autoscaler-status has all"
    assert len(found) == 12


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([], id="no status"),
        pytest.param(
            [status(text="Cluster-autoscaler status at 2023-11-24\nNodeGroups:\n  Name: ng")], id="before 1.30"
        ),
        pytest.param([status(text="nodeGroups: {a: [")], id="not YAML"),
        pytest.param([status(text="nodeGroups: [{health: {cloudProviderTarget: '8', maxSize: 8}}]")], id="texts"),
        pytest.param([status(text="nodeGroups: [{health: {cloudProviderTarget: 1, maxSize: true}}]")], id="a truth"),
        pytest.param([status(text="nodeGroups: [{health: {cloudProviderTarget: true, maxSize: 1}}]")], id="true nodes"),
        pytest.param([status(text="nodeGroups: [{health: {cloudProviderTarget: 0, maxSize: 0}}]")], id="of no nodes"),
    ],
)
def test_a_status_of_another_form_adds_nothing(known: list[JsonObject]) -> None:
    text = "pod didn't trigger scale-up: 1 max node group size reached"

    assert messages(event(AUTOSCALER, text), *known) == [text]


def test_a_scale_up_that_failed_is_quoted_for_the_pod_that_triggered_it() -> None:
    text = "pod triggered scale-up: [{ng-h100 1->2 (max: 3)}]"
    name, reason = "cluster-autoscaler-status", "ScaleUpTimedOut"
    own = "Nodes added to group ng-h100 failed to register within 15m0s"
    failed = about("ConfigMap", name, "kube-system", own, reason, "2026-05-01T14:20:00Z")
    other = about("ConfigMap", name, "kube-system", own.replace("h100", "a100"), reason, "2026-05-01T14:25:00Z")

    assert messages(event(AUTOSCALER, text, "TriggeredScaleUp"), failed, other, status(group("ng-h100", 2))) == [
        text,
        own,
    ]


def test_a_group_that_was_scaled_up_and_is_in_backoff_since_is_named() -> None:
    """Another group in backoff has nothing to do with the pod."""
    text = "pod triggered scale-up: [{ng-h100 1->2 (max: 8)}]"
    known = status(group("ng-h100", 2, "Backoff"), group("ng-a100", 2, "Backoff"))

    assert messages(event(AUTOSCALER, text, "TriggeredScaleUp"), known) == [
        text,
        "node group ng-h100 is in backoff since 14:02 UTC",
    ]


def test_the_newest_event_of_each_autoscaler_counts() -> None:
    first = event(AUTOSCALER, "pod triggered scale-up: [{ng 1->2 (max: 3)}]", "TriggeredScaleUp")
    last = event("", "pod didn't trigger scale-up: 1 x", "NotTriggerScaleUp", reportingComponent=AUTOSCALER)
    karpenter, other = event(KARPENTER, "Pod should schedule on: node/n1"), event("default-scheduler", "0/2 nodes")

    found = autoscaler_reports(FileObjects([]), POD, [first, karpenter, last, other])

    assert found == [
        Report(KARPENTER, AT, "Pod should schedule on: node/n1"),
        Report(AUTOSCALER, AT, "pod didn't trigger scale-up: 1 x"),
    ]


def test_a_group_in_backoff_without_a_time_has_none() -> None:
    text = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    known = status(group("ng", 2, "Backoff", since="soon"))

    assert messages(event(AUTOSCALER, text, "NotTriggerScaleUp"), known)[1:] == ["node group ng is in backoff"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_of_several_events_of_a_node_pool_the_newest_is_quoted(newest_first: bool) -> None:
    failed = event(KARPENTER, "Failed to schedule pod, no nodepools")
    times = ("2026-05-01T14:06:00Z", "2026-05-01T14:05:00Z")
    events = [
        about("NodePool", "p", "default", f"at {at}", "NoCompatibleInstanceTypes", at)
        for at in (times if newest_first else reversed(times))
    ]
    for number, each in enumerate(events):
        each["metadata"] = {"name": f"e{number}", "namespace": "default"}

    assert messages(failed, *events)[1:] == [f"NodePool p: at {times[0]}"]
