"""The life of a reservation: from admission over the pending pod to the bound one, and every other end."""

import math
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.storage import make_pv, make_pvc
from tests.support.servers.server import policies_of
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.pods.pending_pods import content_digest, scheduled_content
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.pending_placement import WaitingPod, predict_placement
from webhook.placement.waiting.pod_table import MOST_OF_A_NAMESPACE, MOST_WAITING, UNSEEN_SECONDS
from webhook.serving.app import scoring
from webhook.serving.decisions.rendering import Candidate
from webhook.serving.waiting import waiting_pods
from webhook.serving.waiting.waiting_pods import WaitingPods

Object = dict[str, Any]

NO_SCHEDULERS = SchedulerEvidence(frozenset(), "")
# kube-scheduler keeps the room of such a pod itself, so a reservation would count it twice.
NOMINATED = {"nominatedNodeName": "n0"}
UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def _digest(content: Object) -> bytes:
    return content_digest(scheduled_content(content))


@dataclass
class SlowScorer:
    """The scheduler, which takes the time of the cluster for each pod."""

    cluster: "Cluster"
    scheduler: Scheduler = field(default_factory=Scheduler)

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Placement:
        """Return the placement of the scheduler; it checks the deadline at least once."""
        for _half in range(2):
            self.cluster.cpu_seconds += self.cluster.pod_seconds / 2
            expired()
        return self.scheduler.answer(asked, snapshot, expired)

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Rows:
        """Return the rows of the scheduler."""
        return self.scheduler.feasible_rows(asked, snapshot, expired)


@dataclass
class Cluster:
    """A cluster of nodes with 4 GPUs, its cache, and the pods that wait; time passes when the test says so.

    `more` nodes have no GPU.
    """

    nodes: int = 2
    more: int = 0
    now_seconds: float = 0.0
    cpu_seconds: float = 0.0
    pod_seconds: float = 0.0
    unseen_seconds: float = math.inf
    cache: ClusterCache = field(default_factory=ClusterCache)
    scheduler: Scheduler = field(default_factory=Scheduler)

    def __post_init__(self) -> None:
        nodes = [make_node_object(f"n{number}", capacity={"nvidia.com/gpu": 4}) for number in range(self.nodes)]
        self.cache.replace("Node", nodes + [make_node_object(f"without-{number}") for number in range(self.more)])
        self.waiting = WaitingPods(
            SlowScorer(self),
            lambda: 60,
            self.clock_seconds,
            lambda: self.cpu_seconds,
            unseen_seconds=self.unseen_seconds,
        )

    def clock_seconds(self) -> float:
        """Return the time of the clock, which work takes, too."""
        return self.now_seconds + self.cpu_seconds

    def admit(self, pod: Object) -> str:
        """Admit `pod` as the webhook does; return the verdict."""
        assumed = self.waiting.shown_in(ClusterView(self.cache.snapshot(), self.scheduler)).assumed
        assert assumed is not None
        asked = WaitingPod.of(pod)
        placement = predict_placement(self.scheduler, asked.signature, assumed, "seed", lambda: False)
        if placement.verdict == "Feasible":
            self.waiting.admit(PodIdentity.of(pod), Candidate(_digest(pod), asked, placement))
        return placement.verdict

    def see(self, pod: Object, event: str = "ADDED") -> None:
        """The watch reports `pod`."""
        self.cache.apply("Pod", event, deepcopy(pod))

    def bind(self, pod: Object, node: str) -> None:
        """The watch reports `pod` as bound."""
        bound = deepcopy(pod)
        bound["spec"]["nodeName"] = node
        self.cache.apply("Pod", "MODIFIED", bound)
        self.waiting.bound(Binding.of(bound))

    def gpus(self) -> list[int]:
        """How many GPUs running and waiting pods take of each node."""
        assumed = self.waiting.shown_in(ClusterView(self.cache.snapshot(), self.scheduler)).assumed
        assert assumed is not None
        return [int(amount) for amount in assumed.before(-(10**9)).requested("nvidia.com/gpu")]


def pod(name: str = "", gpus: int = 4, *, token: str = "", **status: Any) -> Object:
    made = make_pod(name or "p").namespace("x").gpu(gpus).owner("Job", "j").status(**status)
    content = (made if name else made.generate_name("j-")).obj()
    if token:
        content["spec"]["volumes"] = [{"name": f"kube-api-access-{token}", "projected": {"sources": []}}]
    return content


def stored(admitted: Object, name: str, created: str = "2026-01-01T00:00:10Z") -> Object:
    content = deepcopy(admitted)
    content["metadata"] |= {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": created}
    return content


def test_pods_of_a_burst_get_the_room_that_there_is() -> None:
    cluster = Cluster(nodes=4)
    verdicts = [cluster.admit(pod(gpus=1)) for _ in range(60)]
    assert verdicts == ["Feasible"] * 16 + ["Waiting"] * 44


@pytest.mark.parametrize("token", ["", "abcde"])
def test_an_admitted_pod_counts_once_until_it_is_bound(token: str) -> None:
    cluster = Cluster()
    cluster.admit(pod(token=token))
    assert sorted(cluster.gpus()) == [0, 4]
    waits = stored(pod(token=token), "j-1")
    cluster.see(waits)
    assert sorted(cluster.gpus()) == [0, 4]
    cluster.bind(waits, "n1")
    assert cluster.gpus() == [0, 4]
    assert cluster.waiting.total == 0


def test_pods_of_one_template_go_where_the_claims_of_their_own_volumes_are() -> None:
    cluster = Cluster()
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": 4}, labels={"disk": name}) for name in ("n0", "n1")]
    volumes = [make_pv(name, on={"disk": [name]}) for name in ("n0", "n1")]
    claims = []
    for owner, volume in (("a", "n0"), ("b", "n1")):
        claim = make_pvc(f"{owner}-data", volume=volume)
        reference = {"kind": "Pod", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
        claims.append(claim | {"metadata": claim["metadata"] | {"namespace": "x", "ownerReferences": [reference]}})
    objects = {"Node": nodes, "PersistentVolume": volumes, "PersistentVolumeClaim": claims, "StorageClass": []}
    for kind, content in (objects | {"CSINode": [], "VolumeAttachment": []}).items():
        cluster.cache.replace(kind, content)

    for name in "ab":
        waits = stored(pod(name, gpus=1), name)
        waits["spec"]["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}]
        cluster.see(waits)

    assert cluster.gpus() == [1, 1]


def test_a_pod_that_is_bound_before_it_is_seen_pending_counts_once() -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    cluster.bind(pod("p"), "n1")
    assert cluster.gpus() == [0, 4]
    assert cluster.waiting.total == 0


def test_a_pod_that_is_created_again_keeps_its_room_though_its_name_was_bound_before() -> None:
    cluster = Cluster(nodes=3)
    cluster.admit(pod("p"))
    cluster.bind(pod("p"), "n1")
    assert sum(cluster.gpus()) == 4
    cluster.see(pod("p"), "DELETED")
    cluster.admit(pod("p"))
    cluster.bind(pod("other"), "n2")

    assert sum(cluster.gpus()) == 8
    assert cluster.waiting.total == 1


def test_the_room_of_a_pod_that_is_never_seen_is_given_up_in_time() -> None:
    cluster = Cluster()
    cluster.admit(pod("refused by a quota"))
    cluster.now_seconds = 59.0
    assert sorted(cluster.gpus()) == [0, 4]
    cluster.now_seconds = 60.0
    assert cluster.gpus() == [0, 0]
    assert cluster.waiting.total == 0


def test_pods_that_were_never_seen_give_their_room_up_when_another_one_is_admitted() -> None:
    """A burst of admissions can share one review of the waiting pods."""
    cluster = Cluster()
    for name, seconds in (("a", 0.0), ("b", 30.0), ("c", 61.0)):
        cluster.now_seconds = seconds
        content = pod(name, gpus=1)
        asked = WaitingPod.of(content)
        found = cluster.scheduler.answer(asked.signature, cluster.cache.snapshot(), lambda: False)
        cluster.waiting.admit(PodIdentity.of(content), Candidate(_digest(content), asked, found))

    assert cluster.waiting.total == 2
    assert cluster.waiting.find_admitted(PodIdentity.of(pod("a", gpus=1))) is None
    assert cluster.waiting.find_admitted(PodIdentity.of(pod("b", gpus=1))) is not None


def test_with_a_live_view_a_pod_that_is_not_seen_in_five_seconds_gives_its_room_back() -> None:
    cluster = Cluster(unseen_seconds=UNSEEN_SECONDS)
    cluster.admit(pod("refused by a quota"))
    cluster.admit(pod("stored"))
    cluster.see(stored(pod("stored"), "stored"))
    cluster.now_seconds = 4.9
    assert cluster.gpus() == [4, 4]
    cluster.now_seconds = 5.0
    assert sorted(cluster.gpus()) == [0, 4]


def test_a_pod_that_is_never_seen_takes_room_of_others_for_five_seconds() -> None:
    """Such as one that a client made up."""
    cluster = Cluster(nodes=4, unseen_seconds=UNSEEN_SECONDS)

    assert [cluster.admit(pod(f"made-up-{number}")) for number in range(40)] == ["Feasible"] * 4 + ["Waiting"] * 36
    assert cluster.admit(pod("real")) == "Waiting"
    cluster.now_seconds = UNSEEN_SECONDS
    assert cluster.admit(pod("real")) == "Feasible"


def test_an_admitted_pod_keeps_its_node_when_it_is_seen() -> None:
    cluster = Cluster(nodes=8)
    cluster.admit(pod("p"))
    before, cluster.pod_seconds = cluster.gpus(), math.inf
    cluster.see(stored(pod("p"), "p"))
    assert cluster.gpus() == before


def test_an_unseen_pod_whose_node_was_taken_gets_another_one() -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    node = f"n{cluster.gpus().index(4)}"
    cluster.bind(pod("other"), node)
    cluster.see(stored(pod("p"), "p"))
    assert cluster.gpus() == [4, 4]


def test_an_unseen_pod_whose_node_was_taken_leaves_no_room_that_it_needs() -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    cluster.bind(pod("other"), f"n{cluster.gpus().index(4)}")
    assert cluster.gpus() == [4, 4]
    assert cluster.admit(pod("q")) == "Waiting"


def test_an_unseen_pod_without_a_node_left_waits() -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    for number in range(2):
        cluster.bind(pod(f"other-{number}"), f"n{number}")
    assert cluster.gpus() == [4, 4]


def test_a_few_pods_get_room_again_before_a_review_though_each_takes_longer_than_the_slice() -> None:
    cluster = Cluster(nodes=8)
    for number in range(3):
        cluster.admit(pod(f"p-{number}"))
    taken = [f"n{number}" for number, gpus in enumerate(cluster.gpus()) if gpus]
    cluster.pod_seconds = 0.005
    for node in taken:
        cluster.bind(pod(f"other-{node}"), node)
    assert sum(cluster.gpus()) == 2 * 3 * 4


def test_a_pod_that_is_admitted_again_counts_once() -> None:
    cluster = Cluster(nodes=3)
    cluster.admit(pod("web-0"))
    cluster.admit(pod("web-0", gpus=1))
    assert sum(cluster.gpus()) == 1


def test_a_pod_that_is_seen_already_is_not_admitted_as_another_one() -> None:
    """A review can be late. A pod of this name in another namespace is another one."""
    cluster = Cluster(nodes=3)
    cluster.see(stored(pod("p"), "p"))
    assert sum(cluster.gpus()) == 4
    cluster.admit(pod("p"))
    assert (sum(cluster.gpus()), cluster.waiting.total) == (4, 1)
    other = pod("p")
    other["metadata"]["namespace"] = "y"
    cluster.admit(other)
    assert (sum(cluster.gpus()), cluster.waiting.total) == (8, 2)


def test_a_token_volume_replaces_no_other_pod_of_the_same_controller() -> None:
    cluster = Cluster(nodes=3)
    cluster.admit(pod())
    cluster.admit(pod(gpus=0, token="another"))
    assert sum(cluster.gpus()) == 4


def test_a_pod_that_is_seen_keeps_its_room() -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    cluster.see(stored(pod("p"), "p"))
    cluster.gpus()
    cluster.now_seconds = 3600.0
    assert sorted(cluster.gpus()) == [0, 4]


def gated(content: Object) -> Object:
    return {**content, "spec": {**content["spec"], "schedulingGates": [{"name": "g"}]}}


def dying(content: Object) -> Object:
    return {**content, "metadata": {**content["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}}


@pytest.mark.parametrize(
    ("is_seen_first", "event", "change"),
    [
        pytest.param(True, "DELETED", lambda content: content, id="deleted"),
        pytest.param(True, "MODIFIED", dying, id="being deleted"),
        pytest.param(False, "ADDED", dying, id="seen when it is being deleted"),
        pytest.param(True, "MODIFIED", lambda content: content | {"status": UNSCHEDULABLE}, id="unschedulable"),
        pytest.param(False, "ADDED", lambda content: content | {"status": UNSCHEDULABLE}, id="seen as unschedulable"),
        pytest.param(True, "MODIFIED", lambda content: content | {"status": {"phase": "Failed"}}, id="ended"),
        pytest.param(False, "ADDED", gated, id="gated by another webhook"),
        pytest.param(True, "MODIFIED", lambda content: content | {"status": NOMINATED}, id="nominated"),
        pytest.param(False, "ADDED", lambda content: content | {"status": NOMINATED}, id="seen as nominated"),
    ],
)
def test_ends_of_a_reservation(is_seen_first: bool, event: str, change: Any) -> None:
    cluster = Cluster()
    cluster.admit(pod("p"))
    waits = stored(pod("p"), "p")
    if is_seen_first:
        cluster.see(waits)
        assert sorted(cluster.gpus()) == [0, 4]
    cluster.see(change(waits), event)
    assert cluster.gpus() == [0, 0]
    assert cluster.waiting.total == 0


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_pod_that_another_webhook_changed_has_the_room_of_what_is_stored(nodes: int) -> None:
    cluster = Cluster(nodes)
    cluster.admit(pod("p", gpus=2))
    cluster.see(stored(pod("p", gpus=3), "p"))
    assert sorted(cluster.gpus(), reverse=True) == [3, 0][:nodes]
    assert len(cluster.waiting) == 1


def test_the_second_call_for_one_pod_replaces_the_first() -> None:
    cluster = Cluster(nodes=3)
    for gpus in (1, 2):
        cluster.admit(pod(gpus=gpus, token="abcde"))
        cluster.admit(pod("named", gpus=gpus))
    assert sum(cluster.gpus()) == 4


def test_pods_of_another_replica_are_seen_in_the_cluster() -> None:
    cluster = Cluster()
    cluster.see(stored(pod(), "j-1"))
    assert cluster.admit(pod("p")) == "Feasible"
    assert cluster.admit(pod("q")) == "Waiting"


def test_pods_that_are_seen_are_placed_in_the_order_of_the_queue() -> None:
    cluster = Cluster(nodes=1)
    late = stored(pod("a"), "a", "2026-01-01T00:00:04Z")
    early = stored(pod("b"), "b", "2026-01-01T00:00:03Z")
    urgent = stored(pod("c"), "c", "2026-01-01T00:00:05Z")
    urgent["spec"]["priority"] = 7
    for each in (late, early, urgent):
        cluster.see(each)
    cluster.waiting.shown_in(ClusterView(cluster.cache.snapshot(), cluster.scheduler))
    assert [each.pod.name for each in cluster.waiting.by_key.values()] == ["c"]


def test_a_pod_loses_its_room_to_another_one_and_gets_a_new_one() -> None:
    cluster = Cluster(nodes=2)
    cluster.admit(pod("p"))
    taken = cluster.gpus().index(4)
    cluster.bind(stored(pod("other"), "other"), f"n{taken}")
    assert cluster.gpus() == [4, 4]


def packed(name: str) -> Object:
    """A pod of one GPU that goes to the node of its like."""
    term = {"labelSelector": {"matchLabels": {"app": "packed"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return make_pod(name).namespace("x").gpu(1).label("app", "packed").affinity(affinity).obj()


@pytest.mark.parametrize("more", [0, 99])
def test_pods_follow_the_one_before_them_that_got_another_node(more: int) -> None:
    cluster = Cluster(more=more)
    for name in ("a", "b", "c"):
        cluster.admit(packed(name))
    predicted = cluster.gpus()[:2]
    assert sorted(predicted) == [0, 3]

    cluster.bind(packed("a"), f"n{predicted.index(0)}")

    assert cluster.gpus()[:2] == predicted[::-1]


def test_a_pod_without_room_gets_what_a_pod_before_it_leaves() -> None:
    cluster = Cluster()
    cluster.see(stored(pod(gpus=1), "a"))
    free = cluster.gpus().index(0)
    second = stored(pod(gpus=3), "b")
    second["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"n{free}"}
    cluster.see(second)
    for name in ("c", "d"):
        cluster.see(stored(pod(gpus=4), name))
        assert sum(cluster.gpus()) == 4
    # The next retries are seconds away.
    cluster.waiting.settle(cluster.cache.snapshot())

    cluster.bind(stored(pod(gpus=1), "a"), f"n{free}")

    assert cluster.gpus() == [4, 4]


def test_pods_that_are_not_placed_yet_are_placed_before_an_admission_in_a_large_cluster() -> None:
    cluster = Cluster(more=99)
    cluster.see(pod("p"))
    assert sum(cluster.gpus()) == 4


class TestPodsThatFitMoreNodesThanAreScored:
    def test_pods_do_not_follow_the_one_before_them(self) -> None:
        cluster = Cluster(nodes=101)
        for name in ("a", "b", "c"):
            cluster.admit(packed(name))
        names = [info.node.name for info in cluster.cache.snapshot().nodes]
        predicted, other = cluster.gpus().index(3), cluster.gpus().index(0)

        cluster.bind(packed("a"), names[other])

        assert (cluster.gpus()[predicted], cluster.gpus()[other]) == (2, 1)

    def test_they_do_not_follow_a_pod_that_fits_few(self) -> None:
        cluster = Cluster(nodes=101)
        first = packed("a")
        first["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n7"}
        for each in (first, packed("b"), packed("c")):
            cluster.admit(each)
        names = [info.node.name for info in cluster.cache.snapshot().nodes]

        cluster.bind(first, "n8")

        assert (cluster.gpus()[names.index("n7")], cluster.gpus()[names.index("n8")]) == (2, 1)

    def test_they_are_placed_in_the_background(self) -> None:
        cluster = Cluster(nodes=101)
        cluster.admit(pod("p"))
        cluster.see(pod("q"))
        assert sum(cluster.gpus()) == 4
        cluster.waiting.settle(cluster.cache.snapshot())
        assert sum(cluster.gpus()) == 8


def test_a_pod_is_admitted_though_nodes_went_while_it_was_placed() -> None:
    cluster = Cluster(nodes=3)
    view = cluster.waiting.shown_in(ClusterView(cluster.cache.snapshot(), cluster.scheduler))
    assumed, asked = view.assumed, WaitingPod.of(pod("p", gpus=1))
    assert assumed is not None
    placement = predict_placement(cluster.scheduler, asked.signature, assumed.copy(), "seed", lambda: False)
    for number in range(2):
        cluster.cache.apply("Node", "DELETED", make_node_object(f"n{number}"))
    cluster.waiting.shown_in(ClusterView(cluster.cache.snapshot(), cluster.scheduler))

    candidate = Candidate(_digest(pod("p", gpus=1)), asked, placement)
    cluster.waiting.admit(PodIdentity.of(pod("p", gpus=1)), candidate)

    assert cluster.waiting.total == 1


@pytest.mark.parametrize("is_seen", [False, True], ids=["known by its admission", "seen pending"])
@pytest.mark.parametrize("is_as_predicted", [True, False], ids=["as predicted", "elsewhere"])
def test_only_a_pod_that_is_bound_elsewhere_causes_work_for_the_pods_after_it(
    *, is_seen: bool, is_as_predicted: bool
) -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.admit(packed(name))
    if is_seen:
        for name in ("a", "b", "c"):
            cluster.see(packed(name))
    predicted = cluster.gpus()
    cluster.pod_seconds = 0.0001

    cluster.bind(packed("a"), f"n{predicted.index(3 if is_as_predicted else 0)}")

    assert cluster.gpus() == (predicted if is_as_predicted else predicted[::-1])
    assert round(cluster.cpu_seconds / cluster.pod_seconds) == (0 if is_as_predicted else 2)


@pytest.mark.parametrize("bound", ["ac", "ca"])
def test_pods_follow_the_first_of_several_that_got_another_node(bound: str) -> None:
    """They are bound in one change of the cluster, in any order."""
    cluster = Cluster()
    for name in ("a", "b", "c", "d"):
        cluster.admit(packed(name))
    predicted = cluster.gpus()
    assert sorted(predicted) == [0, 4]

    for name in bound:
        cluster.bind(packed(name), f"n{predicted.index(0)}")

    assert cluster.gpus() == predicted[::-1]


@pytest.mark.parametrize("after", [2, 3])
def test_more_pods_than_a_limit_follow_in_the_background_only(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_pods, "_MOST_PLACED_AGAIN", 2)
    cluster = Cluster()
    for number in range(after + 1):
        cluster.admit(packed(f"p{number}"))
    predicted = cluster.gpus()

    cluster.bind(packed("p0"), f"n{predicted.index(0)}")

    assert sorted(cluster.gpus()) == ([0, 3] if after == 2 else [1, 3])
    cluster.waiting.settle(cluster.cache.snapshot())
    assert cluster.gpus() == predicted[::-1]


def test_pods_before_the_one_that_got_another_node_stay() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.admit(packed(name))
    predicted = cluster.gpus()

    cluster.bind(packed("c"), f"n{predicted.index(0)}")

    assert sorted(cluster.gpus()) == [1, 2]


def test_pods_that_follow_are_placed_in_slices_and_keep_their_room_until_then() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c", "d"):
        cluster.admit(packed(name))
    predicted = cluster.gpus()
    cluster.pod_seconds = 0.004

    cluster.bind(packed("a"), f"n{predicted.index(0)}")

    assert [max(cluster.gpus()) for _ in range(3)] == [2, 3, 4]
    assert sum(cluster.gpus()) == 4


def test_a_pod_that_is_not_reached_leaves_a_node_that_a_pod_before_it_has_filled() -> None:
    cluster = Cluster()
    for name, gpus in (("a", 1), ("b", 3)):
        content = packed(name)
        content["spec"]["containers"][0]["resources"] = make_pod().gpu(gpus).obj()["spec"]["containers"][0]["resources"]
        cluster.admit(content)
    predicted = cluster.gpus()
    cluster.admit(pod("c", gpus=2))
    assert sorted(predicted) == [0, 4]
    cluster.pod_seconds = 0.004

    cluster.bind(packed("a"), f"n{predicted.index(0)}")

    assert cluster.gpus() == [4 if gpus == 0 else 2 for gpus in predicted]


def test_a_pod_without_room_does_not_end_a_slice_of_those_that_follow() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.admit(packed(name))
    cluster.see(stored(pod("wide", gpus=8), "wide", created="2026-01-01T00:00:20Z"))
    predicted = cluster.gpus()
    cluster.waiting.settle(cluster.cache.snapshot())
    cluster.pod_seconds = 0.004

    cluster.bind(packed("a"), f"n{predicted.index(0)}")

    assert [max(cluster.gpus()) for _ in range(2)] == [2, 3]
    assert (cluster.waiting.total, len(cluster.waiting)) == (3, 2)


def test_a_pod_that_took_too_long_is_not_placed_again_until_it_changes() -> None:
    cluster = Cluster(nodes=1, pod_seconds=1.0)
    cluster.see(stored(pod("p"), "p"))
    assert cluster.gpus() == [0]
    cluster.pod_seconds = 0.0
    for number in range(3):
        cluster.now_seconds += 600
        cluster.cache.apply("Node", "ADDED", make_node_object(f"without-{number}"))
        cluster.waiting.settle(cluster.cache.snapshot())
        assert sum(cluster.gpus()) == 0

    cluster.see(stored(pod("p", gpus=2), "p"), "MODIFIED")

    assert sum(cluster.gpus()) == 2


def test_a_pod_whose_node_disappears_gets_another() -> None:
    cluster = Cluster(nodes=2)
    cluster.admit(pod("p"))
    taken = cluster.gpus().index(4)
    cluster.cache.apply("Node", "DELETED", make_node_object(f"n{taken}"))
    assert cluster.gpus() == [4]


def test_a_pod_without_room_gets_it_when_the_cluster_changes() -> None:
    cluster = Cluster(nodes=1)
    cluster.bind(stored(pod("runs"), "runs"), "n0")
    cluster.see(stored(pod("p"), "p"))
    assert cluster.gpus() == [4]
    assert len(cluster.waiting) == 0
    cluster.cache.apply("Pod", "DELETED", stored(pod("runs"), "runs"))
    cluster.waiting.settle(cluster.cache.snapshot())
    assert len(cluster.waiting) == 1


@pytest.mark.parametrize(
    ("gpus", "in_turn"), [(1, ["urgent", "a", "b"]), (2, ["urgent", "a", "b"]), (3, ["urgent", "a"])]
)
def test_less_urgent_pods_on_a_node_are_placed_again_after_an_urgent_one(gpus: int, in_turn: list[str]) -> None:
    cluster = Cluster(nodes=1)
    for name in ("a", "b"):
        cluster.admit(pod(name, gpus=1))
    urgent = pod("urgent", gpus=gpus)
    urgent["spec"]["priority"] = 7

    cluster.admit(urgent)
    for _ in range(2):
        cluster.waiting.shown_in(ClusterView(cluster.cache.snapshot(), cluster.scheduler))

    assert [each.pod.name for each in cluster.waiting.by_key.values()] == in_turn
    assert cluster.waiting.total == 3


def test_a_pod_admitted_with_a_priority_class_is_before_pods_of_lower_priority() -> None:
    """The API server sets the number after this webhook."""
    cluster = Cluster(nodes=1)
    cluster.cache.replace("PriorityClass", [{"metadata": {"name": "urgent"}, "value": 7}])
    cluster.admit(pod("low", gpus=4))
    urgent = pod("urgent", gpus=4)
    urgent["spec"]["priorityClassName"] = "urgent"

    assert cluster.admit(urgent) == "Feasible"
    for _ in range(2):
        cluster.waiting.shown_in(ClusterView(cluster.cache.snapshot(), cluster.scheduler))

    assert [each.pod.name for each in cluster.waiting.by_key.values()] == ["urgent"]


def test_new_pods_are_placed_in_the_background_before_pods_are_tried_again() -> None:
    cluster = Cluster(nodes=1)
    cluster.see(stored(pod("wide", gpus=8), "wide"))
    cluster.waiting.settle(cluster.cache.snapshot())
    cluster.see(stored(pod("new", gpus=1), "new", "2026-01-01T00:00:11Z"))

    cluster.waiting.settle(cluster.cache.snapshot())

    assert [each.pod.name for each in cluster.waiting.by_key.values()] == ["new"]
    # The other one is still to be tried again when it is deleted.
    cluster.see(stored(pod("wide", gpus=8), "wide"), "DELETED")
    cluster.waiting.settle(cluster.cache.snapshot())
    assert (cluster.waiting.total, len(cluster.waiting)) == (1, 1)


def test_a_pod_that_got_room_because_it_was_changed_is_not_placed_again() -> None:
    cluster = Cluster(nodes=2)
    cluster.bind(stored(pod("a", gpus=1), "a"), "n0")
    cluster.bind(stored(pod("b", gpus=1), "b"), "n1")
    cluster.see(stored(pod("p", gpus=4), "p"))
    assert cluster.gpus() == [1, 1]
    cluster.see(stored(pod("p", gpus=2), "p"), "MODIFIED")
    assert sum(cluster.gpus()) == 4
    cluster.waiting.settle(cluster.cache.snapshot())
    assert sum(cluster.gpus()) == 4


def test_of_equal_pods_without_room_one_is_asked_about() -> None:
    cluster = Cluster(nodes=1)
    for number in range(100):
        cluster.see(stored(pod(f"p{number}", gpus=8 if number < 90 else 5), f"p{number}"))
    cluster.pod_seconds = 0.0001
    cluster.waiting.settle(cluster.cache.snapshot())
    assert round(cluster.cpu_seconds / cluster.pod_seconds) == 2
    assert len(cluster.waiting) == 0


def test_pods_are_placed_in_slices() -> None:
    cluster = Cluster(nodes=8, pod_seconds=0.002)
    for number in range(8):
        cluster.see(stored(pod(f"p{number}"), f"p{number}"))
    first = sum(cluster.gpus())
    assert 0 < first < 32
    for _ in range(40):
        cluster.waiting.settle(cluster.cache.snapshot())
    assert sum(cluster.gpus()) == 32


def test_a_pod_that_takes_a_slice_alone_gets_no_room() -> None:
    cluster = Cluster(nodes=1, pod_seconds=1.0)
    cluster.see(stored(pod("p"), "p"))
    for _ in range(3):
        cluster.waiting.settle(cluster.cache.snapshot())
    assert cluster.gpus() == [0]


def test_admissions_of_pods_that_never_appear_are_bounded_by_namespace() -> None:
    cluster = Cluster(nodes=1)
    cluster.gpus()
    content = pod("p", gpus=0)
    asked = WaitingPod.of(content)
    placement = cluster.scheduler.answer(asked.signature, cluster.cache.snapshot())

    def admit(namespace: str, name: str) -> None:
        identity = PodIdentity.of(content)._replace(namespace=namespace, name=name)
        cluster.waiting.admit(identity, Candidate(_digest(content), asked, placement))

    for number in range(5000):
        admit("crowd", f"p{number}")
    assert cluster.waiting.total == MOST_OF_A_NAMESPACE
    before = cluster.waiting.all_shown.state
    admit("crowd", "another")
    # So the decisions on such pods stay in the cache.
    assert cluster.waiting.all_shown.state == before
    admit("other", "p")
    assert cluster.waiting.total == MOST_OF_A_NAMESPACE + 1


def test_a_pod_that_is_admitted_again_replaces_its_room_though_the_namespace_has_no_place_left() -> None:
    cluster = Cluster(nodes=3)
    cluster.admit(pod("again", gpus=3))
    content = pod("p", gpus=0)
    asked = WaitingPod.of(content)
    placement = cluster.scheduler.answer(asked.signature, cluster.cache.snapshot())
    for number in range(1, MOST_OF_A_NAMESPACE):
        identity = PodIdentity.of(content)._replace(name=f"p{number}")
        cluster.waiting.admit(identity, Candidate(_digest(content), asked, placement))

    cluster.admit(pod("again", gpus=1))

    assert sum(cluster.gpus()) == 1
    assert cluster.waiting.total == MOST_OF_A_NAMESPACE


@pytest.mark.slow
def test_admissions_of_pods_that_never_appear_leave_places_to_pods_that_do() -> None:
    cluster = Cluster(nodes=1)
    cluster.gpus()
    asked = WaitingPod.of(pod("p", gpus=0))
    placement = cluster.scheduler.answer(asked.signature, cluster.cache.snapshot())

    for number in range(MOST_WAITING):
        identity = PodIdentity.of(pod("p"))._replace(namespace=f"made-up-{number}")
        cluster.waiting.admit(identity, Candidate(b"", asked, placement))

    made_up = cluster.waiting.total
    assert made_up <= 3_072
    cluster.see(stored(pod("real"), "real"))
    cluster.gpus()
    assert cluster.waiting.total == made_up + 1


@pytest.mark.slow
def test_pending_pods_are_bounded() -> None:
    cluster = Cluster(nodes=1, pod_seconds=1.0)
    for number in range(MOST_WAITING + 10):
        cluster.see(stored(pod(f"p{number}", gpus=0), f"p{number}"))
    cluster.gpus()
    assert cluster.waiting.total == MOST_WAITING


@pytest.mark.slow
def test_admitted_pods_that_are_seen_are_bounded() -> None:
    cluster = Cluster(nodes=1)
    cluster.gpus()
    asked = WaitingPod.of(pod("p", gpus=0))
    placement = cluster.scheduler.answer(asked.signature, cluster.cache.snapshot())
    cluster.pod_seconds = 1.0
    for number in range(MOST_WAITING + 10):
        seen = stored(pod(f"p{number}", gpus=0), f"p{number}")
        cluster.waiting.admit(PodIdentity.of(seen), Candidate(_digest(seen), asked, placement))
        if number % 500 == 0 or number > MOST_WAITING:
            cluster.waiting.settle(cluster.cache.snapshot())
        cluster.see(seen)
    cluster.gpus()
    assert cluster.waiting.total == MOST_WAITING


@pytest.mark.slow
def test_a_namespace_with_many_pods_leaves_places_to_the_others() -> None:
    cluster = Cluster(nodes=1, pod_seconds=0.004)
    for number in range(MOST_WAITING + 10):
        cluster.see(stored(pod(f"p{number}", gpus=0), f"p{number}"))
    cluster.gpus()
    other = stored(pod("p", gpus=1), "p")
    other["metadata"]["namespace"] = "y"
    other["spec"]["priority"] = 7
    cluster.see(other)
    assert cluster.gpus() == [1]
    assert cluster.waiting.total == MOST_WAITING


def near(name: str, created: str) -> Object:
    """Return a pod that must run beside one of the app b."""
    beside = {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}
    return stored(make_pod(name).namespace("x").gpu(1).label("app", "a").affinity(affinity).obj(), name, created)


def free_node(cluster: Cluster) -> str:
    taken = {each.pod.node_name for each in cluster.waiting.by_key.values()}
    return next(f"n{number}" for number in range(cluster.nodes) if f"n{number}" not in taken)


def test_a_pod_that_a_pod_before_it_made_room_for_keeps_some_when_it_is_placed_again() -> None:
    """An equal pod that comes before both of them has none."""
    cluster = Cluster(nodes=4)
    first = stored(make_pod("first").namespace("x").gpu(1).obj(), "first", "2026-01-01T00:00:01Z")
    third = stored(make_pod("b").namespace("x").gpu(1).label("app", "b").obj(), "b", "2026-01-01T00:00:03Z")
    for each in (first, near("early", "2026-01-01T00:00:02Z"), third, near("late", "2026-01-01T00:00:04Z")):
        cluster.see(each)
        cluster.gpus()
    cluster.waiting.settle(cluster.cache.snapshot())
    assert len(cluster.waiting) == 4

    cluster.bind(first, free_node(cluster))

    assert sorted(cluster.gpus()) == [0, 0, 1, 2]


@pytest.mark.slow
def test_pods_that_were_left_out_are_placed_when_there_are_fewer() -> None:
    cluster = Cluster(nodes=1, pod_seconds=1.0)
    for number in range(MOST_WAITING + 10):
        cluster.see(stored(pod(f"p{number}", gpus=0), f"p{number}"))
    cluster.gpus()
    for number in range(MOST_WAITING):
        cluster.see(stored(pod(f"p{number}", gpus=0), f"p{number}"), "DELETED")
    cluster.gpus()
    cluster.see(stored(pod("q", gpus=0), "q"))
    cluster.gpus()
    assert cluster.waiting.total == 11


class TestPodsOfASchedulerThatDoesNotRun:
    """Nothing binds them, and nothing reports that they are unschedulable."""

    @staticmethod
    def cluster(evidence: SchedulerEvidence | None) -> Cluster:
        cluster = Cluster(nodes=1)
        cluster.cache.put_scheduler_evidence(evidence)
        return cluster

    @staticmethod
    def pod() -> Object:
        content = pod("p")
        content["spec"]["schedulerName"] = "absent-scheduler"
        return content

    RUNS = SchedulerEvidence(frozenset(), "absent-scheduler-1")

    @pytest.mark.parametrize(
        ("evidence", "gpus"),
        [
            pytest.param(None, 4, id="it is not known which schedulers run"),
            pytest.param(NO_SCHEDULERS, 0, id="it does not run"),
            pytest.param(RUNS, 4, id="it runs"),
        ],
    )
    def test_they_take_no_room(self, evidence: SchedulerEvidence | None, gpus: int) -> None:
        cluster = self.cluster(evidence)
        assert cluster.admit(self.pod()) == "Feasible"
        assert cluster.gpus() == [gpus]
        assert cluster.admit(pod("other")) == ("Waiting" if gpus else "Feasible")

    def test_they_take_no_room_when_they_are_seen(self) -> None:
        cluster = self.cluster(NO_SCHEDULERS)
        cluster.admit(self.pod())
        for name in ("p", "of-another-replica"):
            cluster.see(stored(self.pod(), name))
            assert cluster.gpus() == [0]

    def test_room_returns_when_the_scheduler_runs(self) -> None:
        cluster = self.cluster(NO_SCHEDULERS)
        cluster.see(stored(self.pod(), "p"))
        assert cluster.gpus() == [0]
        cluster.now_seconds = 3.0
        cluster.cache.put_scheduler_evidence(self.RUNS)
        cluster.waiting.settle(cluster.cache.snapshot())
        assert cluster.gpus() == [4]

    def test_room_is_given_up_in_seconds_when_the_scheduler_goes(self) -> None:
        cluster = self.cluster(self.RUNS)
        cluster.admit(self.pod())
        assert cluster.gpus() == [4]
        cluster.cache.put_scheduler_evidence(NO_SCHEDULERS)
        cluster.now_seconds = 3.0
        assert cluster.gpus() == [4]
        cluster.now_seconds = 6.0
        assert cluster.gpus() == [0]


def test_pods_are_placed_again_by_the_profile_of_a_new_policy() -> None:
    """The default profile spreads over empty nodes, the profile binpack fills the node that is used already."""
    cluster, policies = Cluster(), policies_of(policy_with())
    cluster.waiting = scoring(policies).waiting
    used = pod("running", gpus=1)
    cluster.cache.apply("Pod", "ADDED", {**used, "spec": {**used["spec"], "nodeName": "n0"}})
    cluster.see(stored(pod("p", gpus=1), "p"))
    assert cluster.gpus() == [1, 1]

    policies.replace(policy_with(placementCheck={"profile": "binpack"}))

    assert cluster.gpus() == [2, 0]


def test_older_snapshot_of_a_late_review_takes_nothing_back() -> None:
    cluster = Cluster(nodes=1)
    older = cluster.cache.snapshot()
    first = pod("p")
    cluster.see(stored(first, "p"))
    cluster.bind(stored(first, "p"), "n0")
    newer = cluster.cache.snapshot()

    cluster.waiting.shown_in(ClusterView(newer, cluster.scheduler))
    cluster.waiting.shown_in(ClusterView(older, cluster.scheduler))

    assert cluster.waiting.base is newer
    assert cluster.waiting.before(0).requested("nvidia.com/gpu").tolist() == [4]
