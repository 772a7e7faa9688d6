"""What the webhook says about groups of pods, compared with what a real scheduler of gangs starts."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.controlplane.client import Answer, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, wait_refused, worker
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import make_pod
from tests.support.on_cluster.registered import Webhook
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.watch.api_server import ClientConfig
from webhook.watch.polling import read_scheduler_evidence

IN_PART = "would start and hold what they request while the others wait"


@dataclass(frozen=True, slots=True)
class Gangs:
    """A running scheduler of gangs beside the webhook.

    Its warnings begin with `name`. `kinds` are the plurals of its objects. `make_group` makes a PodGroup that starts
    with so many pods. `keys` are annotations of ours that each pod has.
    """

    name: str
    scheduler: str
    cluster: Cluster
    webhook: Webhook
    kinds: str
    make_group: Callable[[str, int], object]
    keys: tuple[tuple[str, str], ...] = ()

    def look(self) -> None:
        """Give the webhook a view of the cluster as it is now, with the signs of schedulers."""
        self.webhook.look_at(self.cluster, self.kinds)
        view = self.webhook.world.cluster
        assert view is not None
        snapshot = replace(view.snapshot, scheduler_evidence=asyncio.run(self._signs()))
        self.webhook.world.cluster = replace(view, snapshot=snapshot)

    async def _signs(self) -> SchedulerEvidence:
        async with ClientConfig(self.cluster.control_plane.kubeconfig).connect() as server:
            return await read_scheduler_evidence(server)

    def create(self, pods: int, **keys: object) -> list[Answer]:
        """Return the answers to the creation of so many pods of the gang `bert`, with a view of the cluster before."""
        self.look()
        named = {"gang": "bert", **dict(self.keys), **keys}
        return [self.cluster.create(worker(f"bert-{number}", **named)) for number in range(pods)]

    def bound_at_last(self, answers: list[Answer]) -> int:
        """Return how many of the pods are bound once the scheduler has tried all of them.

        It has when it has bound a pod without a card that is created now.
        """
        probe = make_pod("probe").annotate(TYPE, "training").requests(cpu="1").limits(cpu="1")
        for key, value in self.keys:
            probe = probe.annotate(f"{DOMAIN}/{key}", value)
        self.cluster.wait_bound(self.cluster.create(probe).object)
        return bound(self.cluster, [each.object for each in answers])


def said(answer: Answer, text: str = "") -> list[str]:
    """Return the warnings of the webhook with this text, without those about annotations that have no effect."""
    return [each for each in answer.warnings if text in each and "has no effect" not in each]


def smaller_group_starts_in_part(gangs: Gangs) -> None:
    """Compare a gang of four whose PodGroup starts with two of them, on two free cards of four."""
    gangs.cluster.make_nodes(gpu_node("n1", 4))
    gangs.cluster.create(make_pod("other").node_name("n1").gpu(2))
    gangs.make_group("bert", 2)

    answers = gangs.create(4, gang_size=4)

    for each in answers:
        (counted, in_part) = said(each)
        assert counted.startswith("placement check: Waiting: 2 of 4 pods of gang bert fit now; ")
        assert in_part == (
            f"2 of the 4 pods of gang bert {IN_PART}, and two such gangs can deadlock: "
            f"scheduler {gangs.scheduler} starts 2 of them without the others, as their PodGroup says"
        )
    pods = [each.object for each in answers]
    wait_for(lambda: bound(gangs.cluster, pods) >= 2, "two bound pods")
    assert gangs.bound_at_last(answers) == 2


def larger_group_never_starts(gangs: Gangs) -> None:
    """Compare a gang of four whose PodGroup needs six, on eight cards."""
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    gangs.make_group("bert", 6)

    answers = gangs.create(4, gang_size=4)

    for each in answers:
        reason, verdict = said(each)
        assert reason == f"{gangs.name}: PodGroup bert needs 6 pods, and the gang has 4: it never starts"
        assert verdict.startswith("placement check: Infeasible: 1/1 nodes are available. ")
    assert gangs.bound_at_last(answers) == 0


def group_is_the_size_without_one(gangs: Gangs, cards: int) -> None:
    """Compare a gang without a size, whose PodGroup needs four pods, on so many free cards of eight."""
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    gangs.cluster.create(make_pod("other").node_name("n1").gpu(8 - cards))
    gangs.make_group("bert", 4)
    starts = cards >= 4

    answers = gangs.create(4)

    for each in answers:
        assert [text.partition(";")[0] for text in said(each)] == (
            [] if starts else [f"placement check: Waiting: {cards} of 4 pods of gang bert fit now"]
        )
    if starts:
        wait_bound_all(gangs.cluster, [each.object for each in answers])
    assert gangs.bound_at_last(answers) == 4 * starts


def node_of_a_pod_that_does_not_end_is_reserved(gangs: Gangs, reserved: str) -> None:
    """Let a pod wait for a node whose pod should have ended, and then give another node room.

    The scheduler writes `reserved` in an Event on a pod for which it reserves room.
    """
    cluster = gangs.cluster
    _fill(gangs)
    waits = _create(gangs, "waits")
    _wait_reserved(cluster, reserved, "waits")
    before = bound(cluster, [waits])

    cluster.delete_pod(cluster.client.get("Pod", "on-n2", cluster.namespace))

    assert before == 0
    assert cluster.wait_bound(waits) == "n2"


def gang_keeps_free_cards_for_a_pod_that_does_not_end(gangs: Gangs, reserved: str, **queue: str) -> None:
    """Let a gang of two wait for a free node and for that of a pod that should have ended, and a later pod for either.

    `reserved` is as in `node_of_a_pod_that_does_not_end_is_reserved`. `queue` is the annotation of the gang's queue.
    """
    cluster = gangs.cluster
    _fill(gangs)
    cluster.delete_pod(cluster.client.get("Pod", "on-n2", cluster.namespace))
    gangs.make_group("bert", 2)
    gang = [_create(gangs, f"bert-{number}", gang="bert", gang_size=2) for number in range(2)]
    _wait_reserved(cluster, reserved, "bert")
    later = _create(gangs, "later", **queue)
    wait_refused(cluster, [later])
    before = bound(cluster, [*gang, later])

    cluster.client.patch("Pod", "ending", {"metadata": {"finalizers": None}}, namespace=cluster.namespace)

    assert before == 0
    assert sorted(wait_bound_all(cluster, gang)) == ["n1", "n2"]
    assert bound(cluster, [later]) == 0


def _fill(gangs: Gangs) -> None:
    """Make a node whose pod should have ended, and two without room for four cards; pods of one card hold these.

    Together they have so many free cards that Volcano lets a pod of four into its queue.
    """
    cluster = gangs.cluster
    cluster.make_nodes(*(gpu_node(name, 4) for name in ("n1", "n2", "n3")))
    for name in ("n2", "n3"):
        cluster.create(make_pod(f"on-{name}").node_name(name).gpu(1))
    ending = worker("ending", **dict(gangs.keys)).gpu(4).scheduler(gangs.scheduler).obj()
    ending["metadata"]["finalizers"] = ["example.com/never"]
    cluster.wait_bound(cluster.create(ending).object)
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/ending"
    cluster.client.request("DELETE", path, body={"gracePeriodSeconds": 0})


def _create(gangs: Gangs, name: str, **keys: object) -> Object:
    return gangs.cluster.create(worker(name, **{**dict(gangs.keys), **keys}).gpu(4).scheduler(gangs.scheduler)).object


def _wait_reserved(cluster: Cluster, reserved: str, pod: str) -> None:
    def is_reserved() -> bool:
        events = cluster.client.list("Event", cluster.namespace)
        of_pod = [each for each in events if each["involvedObject"].get("name", "").startswith(pod)]
        return any(reserved in each.get("message", "") for each in of_pod)

    wait_for(is_reserved, f"room being reserved for {pod}")
