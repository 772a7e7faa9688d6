"""What warnings and Events state about evictions for a pod that waits."""

import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.batch_objects import pod_group
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.admission.cluster_view import ClusterView
from webhook.admission.verdict import Allowed
from webhook.cluster.batch.queues import PodGroup, PodGroups
from webhook.cluster.snapshot import Snapshot
from webhook.events.report import report_of
from webhook.placement.scheduler import Scheduler

POLICY = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}})
ASKED = make_pod("asked").annotate(TYPE, "training").namespace("default").gpu(4).spec(priority=100)
EVICTS = "kube-scheduler would evict 1 pod of lower priority on a; of this namespace, low is among them"
NOT_KNOWN = "evictions are not known: kube-scheduler evicts pods for all pods of PodGroup g at once"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param("g", NOT_KNOWN, id="of a PodGroup of kube-scheduler"),
        pytest.param("other", EVICTS, id="of one that does not exist"),
        pytest.param("", EVICTS, id="of none"),
    ],
)
def test_evictions_for_a_native_pod_group_are_not_predicted(group: str, expected: str) -> None:
    native = {("default", "g"): PodGroup.of(pod_group("g", group="scheduling.k8s.io", members=0))}
    low = make_pod("low").namespace("default").gpu(4).spec(priority=0)
    info = node("a", low, labels={f"{DOMAIN}/node.usage": "training"}, capacity={"nvidia.com/gpu": "4"})
    snapshot = Snapshot.of((info,), disruption_budgets=(), pod_groups=PodGroups(native=native))
    pod = ASKED.spec(schedulingGroup={"podGroupName": group}) if group else ASKED

    verdict = admit_pod(pod.obj(), POLICY, ClusterView(snapshot, Scheduler(suggestions=1)))
    report = report_of(verdict)

    assert isinstance(verdict, Allowed)
    assert verdict.warnings[-1] == f"placement check: {expected}"
    assert report is not None
    assert report.note.endswith(f". {expected}.")
