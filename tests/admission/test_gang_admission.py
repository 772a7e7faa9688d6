"""The verdict on a gang at the admission of one of its pods: warnings, denials, and the room that is reserved."""

from typing import Any

import pytest

from tests.placement.config.loaded import profile_of
from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, make_request, policy_with
from tests.support.objects.batch_objects import volcano_group, volcano_queue
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from tests.support.servers.server import make_work_budget
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Denied
from webhook.admission.verdict import Verdict
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.policy.policy import Policy
from webhook.serving.decisions.decision_cache import DecisionCache

USAGE = {f"{DOMAIN}/node.usage": "training"}
CARD = "nvidia.com/gpu.product"
WORKER = make_pod("train-0").annotate(TYPE, "training").annotate(f"{DOMAIN}/gang", "train").gpu(1)
OTHER = make_pod("other").gpu(2)

COUNT = "placement check: Waiting: 2 of 4 pods of gang train fit now; "
BLOCK = "largest free block: 2 nvidia.com/gpu on 1 node; the next: "
MESSAGE = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
PARTIAL = (
    "2 of the 4 pods of gang train would start and hold what they request while the others wait, and two such gangs "
    "can deadlock: scheduler default-scheduler starts pods one by one"
)


def policy_for(scheduler: str | None = None, **spec: Any) -> Policy:
    """Return a policy whose training pods are for kube-scheduler, or another `scheduler`."""
    training = {"nodeUsage": {"allow": ["training"]}, "schedulerName": scheduler}
    return policy_with(workloadTypes={"training": training}, **spec)


def node_of(*running: PodBuilder, cards: int = 4) -> NodeInfo:
    """Return the node "a" with so many cards and `running` pods."""
    return node("a", *running, labels=USAGE, capacity={"nvidia.com/gpu": str(cards)})


def admitted(
    pod: PodBuilder,
    *running: PodBuilder,
    cards: int = 4,
    policy: Policy | None = None,
    nodes: tuple[NodeInfo, ...] = (),
) -> Verdict:
    """Return the verdict on `pod` beside `running` ones on a node with so many cards."""
    nodes = nodes or (node_of(*running, cards=cards),)
    return admit_pod(pod.obj(), policy or policy_for(), ClusterView(Snapshot.of(nodes), Scheduler()))


def of(size: int) -> PodBuilder:
    return WORKER.annotate(f"{DOMAIN}/gang-size", str(size))


def advised(pod: PodBuilder) -> Verdict:
    """Return the verdict on `pod` on a node with four free cards, with a suggestion if there is one."""
    return admit_pod(pod.obj(), policy_for(), ClusterView(Snapshot.of((node_of(),)), Scheduler(suggestions=1)))


def warnings(verdict: Verdict) -> list[str]:
    """Return the warnings but those on what the scheduler cannot express."""
    return [each for each in verdict.warnings if "has no effect" not in each and "no sign" not in each]


def test_gang_that_fits_is_not_mentioned() -> None:
    assert warnings(admitted(of(4))) == []


@pytest.mark.parametrize("is_disabled", [True, False])
def test_gang_is_placed_by_the_profile_of_the_view(*, is_disabled: bool) -> None:
    """A profile of the administrator has precedence over that of the policy, for a gang as for a pod."""
    disabled = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}} if is_disabled else {}
    profiles = {"default-scheduler": profile_of(**disabled)}
    scheduler = scheduler_for(policy_for(), profiles=profiles)
    view = ClusterView(Snapshot.of((node_of(OTHER),)), scheduler, profiles=profiles)

    found = warnings(admit_pod(of(4).obj(), policy_for(), view))

    assert found == ([] if is_disabled else [COUNT + BLOCK + MESSAGE, PARTIAL])


def test_first_pod_warns_of_a_partial_start() -> None:
    assert warnings(admitted(of(4), OTHER)) == [COUNT + BLOCK + MESSAGE, PARTIAL]


@pytest.mark.parametrize(
    ("members", "block"), [(1, "largest free block: 1 nvidia.com/gpu on 1 node"), (2, "no nvidia.com/gpu is free")]
)
def test_later_pods_warn_of_it_too_whether_or_not_they_fit_themselves(members: int, block: str) -> None:
    running = [of(4).label("job", "train")] * members

    assert warnings(admitted(of(4), OTHER, *running)) == [f"{COUNT}{block}; the next: {MESSAGE}", PARTIAL]


def test_gang_that_waits_as_a_whole_holds_nothing() -> None:
    found = warnings(admitted(of(4), OTHER, OTHER))

    assert [each.partition(";")[0] for each in found] == ["placement check: Waiting: 0 of 4 pods of gang train fit now"]


def test_gang_that_has_started_whole_has_no_warning_at_a_further_pod() -> None:
    running = [of(2).label("job", "train")] * 2

    assert PARTIAL not in warnings(admitted(of(2), OTHER, *running))


def test_scheduler_of_gangs_starts_none_in_part() -> None:
    assert warnings(admitted(of(4), OTHER, policy=policy_for("volcano"))) == [
        COUNT + BLOCK + MESSAGE.replace("available", "unavailable")
    ]


def in_part(pod: PodBuilder, policy: Policy) -> list[str]:
    """Return the warnings of a start in part of a gang of four pods like `pod`, of which two fit."""
    pod = pod.annotate(TYPE, "training").annotate(f"{DOMAIN}/gang-size", "4").gpu(1)
    return [each for each in admitted(pod, OTHER, policy=policy).warnings if "two such gangs can deadlock" in each]


NAMED = {f"{DOMAIN}/gang": "train"}
QUEUED = {**NAMED, f"{DOMAIN}/queue": "q"}


@pytest.mark.parametrize(
    ("backend", "queueing", "annotations", "is_whole"),
    [
        ("volcano", "scheduler", {}, False),
        ("volcano", "scheduler", NAMED, True),
        ("kai", "scheduler", {}, False),
        # It makes a PodGroup for each pod of a Job, whatever the pod names.
        ("kai", "scheduler", NAMED, False),
        ("coscheduling", "scheduler", {}, False),
        ("coscheduling", "scheduler", NAMED, True),
        ("native", "scheduler", {}, False),
        ("native", "scheduler", NAMED, True),
        ("default", "scheduler", QUEUED, False),
        ("default", "kueue", NAMED, False),
        ("default", "kueue", {f"{DOMAIN}/queue": "q"}, False),
        ("default", "kueue", QUEUED, False),
        ("default", "kueue", {**QUEUED, "kueue.x-k8s.io/podset-required-topology": "rack"}, True),
        ("volcano", "kueue", NAMED, False),
        ("volcano", "kueue", QUEUED, False),
        ("volcano", "kueue", {"scheduling.k8s.io/group-name": "own"}, True),
    ],
)
def test_gang_starts_whole_only_if_its_scheduler_knows_it_or_kueue_knows_the_topology(
    backend: str, queueing: str, annotations: dict[str, str], is_whole: bool
) -> None:
    policy = policy_for("gangs", schedulers={"gangs": {"backend": backend}}, queueing=queueing)
    pod = make_pod("train-0").owner("Job", "train")
    for key, value in annotations.items():
        pod = pod.annotate(key, value)

    assert bool(in_part(pod, policy)) is not is_whole


@pytest.mark.parametrize(
    ("timeout", "end"),
    [("", "and two such gangs can deadlock"), ("5m", "until Kueue evicts them after 5m (waitForPodsReady)")],
)
def test_start_in_part_ends_where_kueue_waits_for_pods_to_be_ready(timeout: str, end: str) -> None:
    evidence = SchedulerEvidence(frozenset({"kueue.x-k8s.io"}), "", timeout)
    view = ClusterView(Snapshot.of((node_of(OTHER),), scheduler_evidence=evidence), Scheduler())

    found = warnings(admit_pod(of(4).annotate(f"{DOMAIN}/queue", "q").obj(), policy_for(queueing="kueue"), view))

    assert [each for each in found if "starts pods one by one" in each] == [
        PARTIAL.replace("and two such gangs can deadlock", end)
    ]


def test_warning_of_a_scheduler_of_gangs_names_the_annotation_without_which_it_knows_none() -> None:
    pod = make_pod("train-0").annotate(TYPE, "training").annotate(f"{DOMAIN}/gang-size", "4").gpu(1)

    found = warnings(admitted(pod, OTHER, policy=policy_for("volcano")))

    assert found[-1].endswith(f"scheduler volcano starts pods one by one without {DOMAIN}/gang")


def in_group(members: int, size: int | None, *, cards: int = 4, running: PodBuilder = OTHER, **spec: Any) -> list[str]:
    """Return the warnings at the pod of a gang of Volcano of `size`, whose PodGroup needs so many `members`."""
    pod = WORKER if size is None else of(size)
    objects = [make_node_object("a", labels=USAGE, capacity={"nvidia.com/gpu": cards})]
    objects += [running.node_name("a").obj(), volcano_group("train", members=members), volcano_queue()]
    return warnings(admit_pod(pod.obj(), policy_for("volcano", **spec), ClusterView(made_anew(objects), Scheduler())))


IN_PART = PARTIAL.partition(": scheduler")[0]


@pytest.mark.parametrize(
    ("members", "size", "found"),
    [
        pytest.param(
            2,
            4,
            [f"{IN_PART}: scheduler volcano starts 2 of them without the others, as their PodGroup says"],
            id="smaller",
        ),
        pytest.param(3, 4, [], id="smaller, and fewer fit"),
        pytest.param(4, 4, [], id="equal"),
        pytest.param(4, None, [], id="the size of the gang"),
    ],
)
def test_group_decides_how_many_pods_start(members: int, size: int | None, found: list[str]) -> None:
    count = "placement check: Waiting: 2 of 4 pods of gang train fit now"
    rest = in_group(members, size)

    assert [each for each in rest if each.startswith(count)] != []
    assert [each for each in rest if not each.startswith(count)] == found


@pytest.mark.parametrize(
    ("running", "begin"),
    [
        (OTHER, f"2 of 4 pods of gang train fit now; {BLOCK}"),
        (make_pod("other"), "1/1 nodes are available. "),
    ],
)
def test_gang_whose_group_needs_more_pods_is_infeasible_and_not_denied(running: PodBuilder, begin: str) -> None:
    reason = "PodGroup train needs 6 pods, and the gang has 4: it never starts"

    found = in_group(6, 4, running=running, placementCheck={"mode": "deny"})

    assert [each.rstrip(".") for each in found] == [
        f"Volcano: {reason}",
        f"placement check: Infeasible: {begin}{reason}",
        "placement check: not refused: its PodGroup can change",
    ]


def test_pods_of_a_volcano_job_are_a_gang_without_a_name() -> None:
    pod = make_pod("train-0").label("volcano.sh/job-name", "train").owner("Job", "train")

    assert in_part(pod, policy_for("volcano")) == []
    assert in_part(pod, policy_for()) != []
    of_job = pod.annotate(TYPE, "training").annotate(f"{DOMAIN}/gang-size", "4").gpu(1)
    assert [each for each in admitted(of_job, policy=policy_for("volcano")).warnings if "no effect" in each] == []


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("train-0").owner("TFJob", "train", api_version="kubeflow.org/v1"),
        make_pod("train-head").owner("RayCluster", "train", api_version="ray.io/v1"),
        make_pod("train-0-1")
        .label("leaderworkerset.sigs.k8s.io/name", "train")
        .owner("StatefulSet", "train-0", api_version="apps/v1"),
    ],
    ids=["a TFJob", "a RayCluster", "a LeaderWorkerSet"],
)
def test_kai_makes_a_gang_of_the_pods_of_some_operators(pod: PodBuilder) -> None:
    assert in_part(pod, policy_for("kai-scheduler")) == []
    assert in_part(pod, policy_for("volcano")) != []


@pytest.mark.parametrize(("size", "is_denied"), [(4, False), (5, True)])
def test_only_a_gang_that_even_an_empty_cluster_cannot_hold_is_denied(size: int, is_denied: bool) -> None:
    verdict = admitted(of(size), OTHER, policy=policy_for(placementCheck={"mode": "deny"}))

    assert isinstance(verdict, Denied) == is_denied
    if isinstance(verdict, Denied):
        assert verdict.denial.message == (
            f"this cluster cannot run the pods of this gang together as they are: {MESSAGE} 2 of 5 pods of gang train "
            "fit now; no more than 4 would fit on an empty cluster; largest free block: 2 nvidia.com/gpu on 1 node."
        )


def test_cordoned_nodes_keep_a_gang_from_being_denied() -> None:
    usable = node("a", labels=USAGE, capacity={"nvidia.com/gpu": "4"})
    cordoned = node("b", labels=USAGE, capacity={"nvidia.com/gpu": "4"}, unschedulable=True)

    found = warnings(admitted(of(8), nodes=(usable, cordoned), policy=policy_for(placementCheck={"mode": "deny"})))

    assert "placement check: not refused: nodes would do that are cordoned, not ready or not well" in found


def test_check_that_is_off_counts_no_gang() -> None:
    assert warnings(admitted(of(9), policy=policy_for(placementCheck={"mode": "off"}))) == []


def test_gang_without_a_size_is_a_pod_like_others() -> None:
    assert warnings(admitted(WORKER, OTHER)) == []


def test_gang_without_a_name_is_that_of_the_controller() -> None:
    unnamed = (
        make_pod("x").annotate(TYPE, "training").annotate(f"{DOMAIN}/gang-size", "3").gpu(1).owner("Job", "resnet")
    )

    assert warnings(admitted(unnamed, unnamed, unnamed, cards=3)) == []
    assert "2 of 3 pods of gang resnet fit now" in warnings(admitted(unnamed, unnamed, OTHER, cards=4))[0]


def gated(pod: PodBuilder, owner: str) -> PodBuilder:
    return pod.label("kueue.x-k8s.io/queue-name", "q").spec(schedulingGates=[{"name": f"{owner}/admission"}])


KUEUE, OTHER_GATE = "kueue.x-k8s.io", "example.com"
BLOCKED = (
    "placement check: Waiting: Scheduling is blocked due to non-empty scheduling gates. "
    "Not predicted: when Kueue admits the pod, by quota."
)

ONCE = "placement check: suggestion: "


@pytest.mark.parametrize(
    ("owner", "size", "found"),
    [
        (KUEUE, 1, []),
        (KUEUE, 4, []),
        (OTHER_GATE, 1, [BLOCKED, f"{ONCE}1 node can take it once the gate is removed"]),
        (OTHER_GATE, 4, [BLOCKED, f"{ONCE}4 pods would fit once the gate is removed"]),
    ],
)
def test_gates_are_no_reason_of_the_nodes(owner: str, size: int, found: list[str]) -> None:
    """The API server calls again after Kueue has added its gates, which stand for quota alone."""
    assert warnings(advised(gated(of(size), owner))) == found


def test_no_room_is_reserved_while_kueue_holds_the_pod() -> None:
    snapshot = Snapshot.of((node_of(),))
    view = ClusterView(snapshot, Scheduler(), assumed=AssumedPods(snapshot))

    def candidate(pod: PodBuilder) -> object:
        return DecisionCache().decide(make_request(pod.obj()), policy_for(), view, make_work_budget()).candidate

    assert candidate(of(1)) is not None
    assert candidate(gated(of(1), KUEUE)) is None


@pytest.mark.parametrize(("scheduler", "node"), [(None, "a"), ("volcano", None)])
def test_room_is_reserved_for_what_the_scheduler_binds(scheduler: str | None, node: str | None) -> None:
    """kube-scheduler binds the pod even if its gang does not fit; a scheduler of gangs does not."""
    snapshot = Snapshot.of((node_of(OTHER),))
    view = ClusterView(snapshot, Scheduler(), assumed=AssumedPods(snapshot))
    request = make_request(of(4).obj())

    candidate = DecisionCache().decide(request, policy_for(scheduler), view, make_work_budget()).candidate

    assert (candidate.placement.node if candidate else None) == node


def suggestions(pod: PodBuilder, *nodes: NodeInfo) -> list[str]:
    """Return the suggestions that the user of `pod`, one of a gang, gets."""
    policy = policy_for()
    verdict = admit_pod(pod.obj(), policy, ClusterView(Snapshot.of(nodes), scheduler_for(policy)))
    prefix = "placement check: suggestion: "
    return [each.removeprefix(prefix) for each in verdict.warnings if each.startswith(prefix)]


def cards(name: str, free: int, product: str = "NVIDIA-H20") -> NodeInfo:
    running = [make_pod(f"other-{name}").gpu(8 - free)] if free < 8 else []
    return node(name, *running, labels={**USAGE, CARD: product}, capacity={"nvidia.com/gpu": "8"})


PAIR = of(2).gpu(8)


@pytest.mark.parametrize(("free", "asked"), [(6, ["ask for 6"]), (5, [])])
def test_a_smaller_request_is_suggested_only_if_the_whole_gang_fits_with_it(free: int, asked: list[str]) -> None:
    found = suggestions(PAIR, cards("a", 6), cards("b", free))

    assert [each.partition(" nvidia.com/gpu instead of 8: ")[0] for each in found] == asked


@pytest.mark.parametrize(("other", "is_suggested"), [("NVIDIA-A100", True), ("NVIDIA-L40S", False)])
def test_another_product_is_suggested_only_if_the_whole_gang_fits_on_it(other: str, *, is_suggested: bool) -> None:
    wanted = PAIR.annotate(PRODUCT, "NVIDIA-H200")

    found = suggestions(wanted, cards("a", 8, "NVIDIA-A100"), cards("b", 8, other))

    assert (f"set {PRODUCT}: NVIDIA-A100 instead of NVIDIA-H200: 2 nodes would fit" in found) is is_suggested
    assert not [each for each in found if "1 node would fit" in each]


OF_ANOTHER, OF_THE_GANG = make_pod("other").gpu(8), WORKER.gpu(8)


@pytest.mark.parametrize(
    ("first", "second", "size", "freed"),
    [
        pytest.param(OF_ANOTHER, OF_THE_GANG, 2, ["a fits once 1 nvidia.com/gpu is freed"], id="the last pod"),
        pytest.param(OF_ANOTHER, OF_THE_GANG, 3, [], id="two pods are left"),
        pytest.param(OF_THE_GANG, OF_ANOTHER, 2, [], id="what a pod of the gang holds"),
    ],
)
def test_only_room_that_others_hold_is_to_be_freed_and_only_for_the_last_pod(
    first: PodBuilder, second: PodBuilder, size: int, freed: list[str]
) -> None:
    running = {"a": first, "b": second}
    nodes = (node(name, pod, labels=USAGE, capacity={"nvidia.com/gpu": "8"}) for name, pod in running.items())

    assert suggestions(of(size), *nodes) == freed
