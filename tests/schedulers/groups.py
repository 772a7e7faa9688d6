"""What the webhook says about groups of pods, compared with what a real scheduler of gangs starts."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.controlplane.client import Answer
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, worker
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
