"""The facts about pods that a snapshot does not have."""

from typing import Any

from placement_console.pod_facts import PodFact, PodFacts
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.cluster.cache.object_key import Key

POD = (
    make_pod("p")
    .namespace("team-a")
    .annotate("maip.mxsf.io/workload-type", "training")
    .annotate("example.com/note", "of another domain")
    .owner("Job", "train")
)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}


def fact_after(*pods: PodBuilder | None) -> PodFact:
    """Return what is known of the pod after these changes; None is its deletion."""
    facts = PodFacts("maip.mxsf.io")
    for pod in pods:
        content: dict[str, Any] | None = None if pod is None else pod.obj()
        facts.object_changed("Pod", Key("team-a", "p"), content)
    return facts.of("team-a", "p")


def test_a_pending_pod_has_its_last_report_and_the_annotations_of_the_domain() -> None:
    conditions = [{"type": "Ready", "message": "of another condition"}, UNSCHEDULABLE]
    pending = POD.status(phase="Pending", conditions=conditions).spec(schedulingGates=[{"name": "example.com/quota"}])

    assert fact_after(pending) == PodFact(
        "Job/train",
        "training",
        "0/2 nodes are available",
        ("example.com/quota",),
        annotations=(("maip.mxsf.io/workload-type", "training"),),
    )


def test_a_pod_has_only_the_facts_of_its_state() -> None:
    pending, bound = POD.status(phase="Pending", conditions=[UNSCHEDULABLE]), POD.node_name("n")
    ended = bound.status(phase="Succeeded")

    assert fact_after(pending, bound) == PodFact("Job/train", "training")
    assert fact_after(pending, bound, ended) == fact_after(pending, None) == PodFact()
