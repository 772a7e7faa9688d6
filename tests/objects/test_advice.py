"""The advice on the placement of all replicas of an object."""

from itertools import permutations

import pytest

from tests.objects.advised import (
    DEPLOYMENT,
    JOB_SET,
    ONE_SCHEDULER,
    RAY,
    STATEFUL_SET,
    TWO_NODES,
    admitted,
    gpu_node,
    template,
    view,
    waiting,
    warnings_of,
)
from tests.support.admission import PRODUCT, TYPE, USAGE, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import available, make_pv, make_pvc, make_storage_class
from tests.support.objects.workloads import APP, Object, Sample
from webhook.kube.names import HOSTNAME_LABEL

CARD = "nvidia.com/gpu.product"


def test_pods_that_wait_take_their_places_first() -> None:
    verdict = admitted(DEPLOYMENT.object(template(4), 4), waiting(make_pod("waits").gpu(8)))

    assert warnings_of(verdict)[0] == (
        "placement check: Waiting: 2 of 4 replicas fit now; the next: 0/2 nodes are unavailable: "
        "2 Insufficient nvidia.com/gpu. It would fit, but 1 pod that waits before it needs the room."
    )
    assert warnings_of(admitted(DEPLOYMENT.object(template(4), 4), TWO_NODES)) == ()


def test_roles_are_placed_together() -> None:
    spec = RAY.spec(template(8), 2)
    spec["headGroupSpec"]["template"] = template(8)

    first, *_ = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, TWO_NODES))

    assert first == (
        "placement check: Waiting: head 1 of 1, gpu 1 of 2 replicas fit now; "
        "the next gpu: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_roles_that_do_not_fit_one_that_never_fits_is_reported(is_first: bool) -> None:
    job = JOB_SET.object(template(8))
    (role,) = job["spec"]["replicatedJobs"]
    waits = [role | {"name": f"waits-{number}"} for number in range(3)]
    (never,) = JOB_SET.object(template(64))["spec"]["replicatedJobs"]
    job["spec"]["replicatedJobs"] = [never, *waits] if is_first else [*waits, never]

    first, *_ = warnings_of(admitted(job, TWO_NODES))

    assert first.startswith("placement check: Infeasible: ")


def test_many_roles_are_summed_up() -> None:
    job = JOB_SET.object(template(8))
    (role,) = job["spec"]["replicatedJobs"]
    job["spec"]["replicatedJobs"] = [role | {"name": f"role-{number}"} for number in range(6)]

    first, *_ = warnings_of(admitted(job, TWO_NODES))

    assert first.startswith("placement check: Waiting: 2 of 6 replicas of 6 roles fit now; the first role-2: 0/2 nodes")


def stateful_set(replicas: int) -> Object:
    made = STATEFUL_SET.object(template(1), replicas=replicas)
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "local"}}]
    return made


def test_claims_of_a_stateful_set_are_created_with_its_pods() -> None:
    hosts = [{HOSTNAME_LABEL: [name]} for name in ("n1", "n2")]
    storage = [
        make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        *(available(make_pv(f"disk-{index}", "local", on=host)) for index, host in enumerate(hosts)),
    ]
    cluster = view(gpu_node("n1"), gpu_node("n2"), storage)

    assert warnings_of(admitted(stateful_set(2), cluster)) == ()
    first, *_ = warnings_of(admitted(stateful_set(3), cluster))
    assert first == (
        "placement check: Waiting: 2 of 3 replicas fit now; "
        "the next: 0/2 nodes are unavailable: 2 node(s) didn't find available persistent volumes to bind."
    )


def test_without_a_view_of_claims_only_other_shortages_are_certain() -> None:
    scarce = STATEFUL_SET.object(template(16), replicas=2)
    scarce["spec"]["volumeClaimTemplates"] = stateful_set(1)["spec"]["volumeClaimTemplates"]

    assert warnings_of(admitted(stateful_set(2), TWO_NODES)) == ()
    assert "Insufficient nvidia.com/gpu" in warnings_of(admitted(scarce, TWO_NODES))[0]


def h20_node(name: str, *running: PodBuilder, card: str = "NVIDIA-H20") -> list[Object]:
    node = make_node_object(
        name,
        labels={USAGE: "training", CARD: card, HOSTNAME_LABEL: name},
        taints=[f"{USAGE}=training:NoSchedule", f"{CARD}={card}:NoSchedule"],
        capacity={"nvidia.com/gpu": 8},
    )
    return [node, *(pod.node_name(name).obj() for pod in running)]


def suggestions_for(content: Object, *nodes: list[Object]) -> list[str]:
    prefix = "placement check: suggestion: "
    return [text.removeprefix(prefix) for text in warnings_of(admitted(content, view(*nodes))) if prefix in text]


SET_H20 = f"set {PRODUCT}: NVIDIA-H20 instead of NVIDIA-H2O: 2 nodes would fit"
ASK_FOR_6 = "ask for 6 nvidia.com/gpu instead of 8: 2 pods would fit"


@pytest.mark.parametrize(
    ("second", "suggestions"),
    [
        pytest.param(h20_node("n2"), [SET_H20], id="room for both replicas"),
        pytest.param(h20_node("n2", make_pod("other").gpu(1)), [], id="room for one of two"),
    ],
)
def test_a_suggested_annotation_makes_all_replicas_fit(second: list[Object], suggestions: list[str]) -> None:
    content = DEPLOYMENT.object(template(8, gpu_product="NVIDIA-H2O"), 2)

    assert suggestions_for(content, h20_node("n1"), second) == suggestions


@pytest.mark.parametrize(("taken", "question"), [(0, "; did you mean NVIDIA-H20?"), (8, "")])
def test_no_product_is_meant_beside_the_suggestion_of_another(taken: int, question: str) -> None:
    nodes = h20_node("n1", *([make_pod("full").gpu(taken)] if taken else [])), h20_node("n2", card="NVIDIA-A100")

    first, *_ = warnings_of(admitted(DEPLOYMENT.object(template(8, gpu_product="NVIDIA-H2O"), 1), view(*nodes)))

    assert first == f"gpu-product: no node has NVIDIA-H2O{question}"


@pytest.mark.parametrize(("taken", "suggestions"), [(2, [ASK_FOR_6]), (3, [])])
def test_a_smaller_request_is_suggested_only_if_all_replicas_fit_with_it(taken: int, suggestions: list[str]) -> None:
    nodes = [gpu_node("n1", make_pod("a").gpu(2)), gpu_node("n2", make_pod("b").gpu(taken))]

    assert suggestions_for(DEPLOYMENT.object(template(8), 2), *nodes) == suggestions


NONE_LEFT, ONE_LEFT = make_pod("full").gpu(8), make_pod("mostly-full").gpu(7)


@pytest.mark.parametrize(
    ("nodes", "replicas", "suggestions"),
    [
        pytest.param((NONE_LEFT, ONE_LEFT), 2, ["n1 fits once 1 nvidia.com/gpu is freed"], id="the last replica"),
        pytest.param((NONE_LEFT, ONE_LEFT), 3, [], id="two replicas are left"),
        pytest.param((ONE_LEFT, NONE_LEFT), 2, ["n1 fits once 1 nvidia.com/gpu is freed"], id="beside another replica"),
        pytest.param(
            (make_pod("tiny").requests(cpu=1), NONE_LEFT),
            9,
            ["n2 fits once 1 nvidia.com/gpu is freed"],
            id="other pods",
        ),
        pytest.param((make_pod("tiny").requests(cpu=1),), 9, [], id="held by the other replicas"),
    ],
)
def test_room_is_to_be_freed_only_for_the_last_replica_and_never_that_of_another(
    nodes: tuple[PodBuilder, ...], replicas: int, suggestions: list[str]
) -> None:
    cluster = [gpu_node(f"n{number}", running) for number, running in enumerate(nodes, 1)]

    assert suggestions_for(DEPLOYMENT.object(template(1), replicas), *cluster) == suggestions


@pytest.mark.parametrize(("cards", "is_suggested"), [(4, True), (5, False)])
def test_a_suggestion_for_one_role_leaves_room_for_the_roles_after_it(cards: int, *, is_suggested: bool) -> None:
    content = RAY.object(template(4, gpu_product="NVIDIA-H2O"), 1)
    groups = content["spec"]["workerGroupSpecs"]
    groups.append({**groups[0], "groupName": "more", "template": template(cards)})

    assert (SET_H20.replace("2 nodes", "1 node") in suggestions_for(content, h20_node("n1"))) is is_suggested


def ray(*roles: tuple[Object, int]) -> Object:
    """Return an object with the templates and the numbers of pods of `roles`."""
    content = RAY.object(*roles[0])
    (group,) = content["spec"]["workerGroupSpecs"]
    content["spec"]["workerGroupSpecs"] = [
        {**group, "groupName": f"g{number}", "template": each, "replicas": replicas}
        for number, (each, replicas) in enumerate(roles)
    ]
    return content


@pytest.mark.parametrize(("replicas", "is_suggested"), [(1, True), (2, False)])
def test_a_suggestion_for_one_role_leaves_room_for_the_roles_before_it(replicas: int, *, is_suggested: bool) -> None:
    content = ray((template(4), 1), (template(4, gpu_product="NVIDIA-H2O"), replicas))

    assert bool(suggestions_for(content, h20_node("n1"))) is is_suggested


@pytest.mark.parametrize(("product", "is_suggested"), [("NVIDIA-H20", True), ("NVIDIA-H2O", False)])
@pytest.mark.parametrize("is_first", [True, False])
def test_nothing_is_suggested_for_one_role_while_another_one_fits_nowhere(
    product: str, *, is_suggested: bool, is_first: bool
) -> None:
    roles = [(template(4, gpu_product="NVIDIA-H2O"), 1), (template(4, gpu_product=product), 1)]

    found = suggestions_for(ray(*roles if is_first else reversed(roles)), h20_node("n1"), h20_node("n2"))

    assert found == ([SET_H20] if is_suggested else [])


def test_replicas_that_fit_as_they_are_take_no_room_from_those_of_a_suggestion() -> None:
    """Of the first role, one replica fits, and two with 6 cards besides the second role."""
    nodes = [gpu_node("n1"), *(gpu_node(name, make_pod(f"on-{name}").gpu(2)) for name in ("n2", "n3"))]

    assert suggestions_for(ray((template(8), 2), (template(2), 1)), *nodes) == [ASK_FOR_6]


def test_long_names_of_roles_leave_room_for_the_reason() -> None:
    spec = RAY.spec(template(8), 3)
    spec["workerGroupSpecs"][0]["groupName"] = "g" * 200

    first, *_ = warnings_of(admitted(RAY.object(template()) | {"spec": spec}, TWO_NODES, ONE_SCHEDULER))

    assert len(first) < 256
    assert first.endswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")


@pytest.mark.parametrize("sample", [DEPLOYMENT, STATEFUL_SET, JOB_SET], ids=lambda each: each.kind)
def test_the_cause_stands_before_the_verdict_and_this_before_the_suggestion(sample: Sample) -> None:
    content = sample.object(template(4, gpu_product="NVIDIA-H2O", gpu_cuont="4"), 1)

    found = [text.partition(": ")[0] for text in warnings_of(admitted(content, view(h20_node("n1"))))]

    assert [each for each in found if not each.startswith("annotation ")] == ["gpu-product"] + 2 * ["placement check"]
    assert found[0].startswith("annotation ")


def claims_on(*hosts: str) -> list[Object]:
    """Return the volumes and the claims of a StatefulSet whose replicas are tied to these hosts."""
    made = [make_storage_class("local", provisioner="kubernetes.io/no-provisioner")]
    for index, host in enumerate(hosts):
        claim = make_pvc(f"data-web-{index}", "local", volume=f"v{index}")
        claim["metadata"]["namespace"] = "team-a"
        made += [make_pv(f"v{index}", "local", on={HOSTNAME_LABEL: [host]}), claim]
    return made


@pytest.mark.parametrize(("hosts", "is_refused"), [(("gone", "n1"), True), (("n1", "gone"), False)])
def test_pods_are_announced_as_refused_only_if_the_first_one_is(hosts: tuple[str, str], is_refused: bool) -> None:
    content = STATEFUL_SET.object(template(1, placement_check="deny"), replicas=2)
    content["spec"]["volumeClaimTemplates"] = stateful_set(1)["spec"]["volumeClaimTemplates"]

    warnings = warnings_of(admitted(content, view(gpu_node("n1"), claims_on(*hosts))))

    assert warnings[0].startswith(f"placement check: Infeasible: {0 if is_refused else 1} of 2 replicas fit")
    assert ("placement check: such pods are refused: placement-check is deny" in warnings) is is_refused


@pytest.mark.parametrize("modes", [("warn", "deny"), ("deny", "warn")])
@pytest.mark.parametrize("never_fits", [0, 1])
def test_pods_are_announced_as_refused_by_the_mode_of_their_own_role(modes: tuple[str, str], never_fits: int) -> None:
    roles = [(template(64 if each == never_fits else 1, placement_check=mode), 1) for each, mode in enumerate(modes)]

    warnings = warnings_of(admitted(ray(*roles), TWO_NODES))

    assert f"; the first g{never_fits}: " in " ".join(warnings)
    is_refused = "placement check: such pods are refused: placement-check is deny" in warnings
    assert is_refused is (modes[never_fits] == "deny")


@pytest.mark.parametrize("is_first", [True, False])
def test_role_whose_pods_are_not_known_is_reported_with_the_counts_of_one_that_fits(is_first: bool) -> None:
    """The view has no claims. Without another role, nothing is known, so there is no warning."""
    unknown = template(1)
    unknown["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    roles = [(unknown, 1), (template(1), 2)]

    alone = admitted(ray(roles[0]), TWO_NODES, ONE_SCHEDULER)
    both = admitted(ray(*roles if is_first else reversed(roles)), TWO_NODES, ONE_SCHEDULER)

    assert warnings_of(alone) == ()
    counts = "g0 0 of 1, g1 2 of 2" if is_first else "g0 2 of 2, g1 0 of 1"
    (warning,) = warnings_of(both)
    assert warning.startswith(f"placement check: Unknown: at least {counts} replicas fit now; the first g")


@pytest.mark.parametrize(
    ("cards", "wanted"),
    [
        (1, ()),
        (64, ("placement check: Unknown: at least 0 of 2 replicas fit now; the first: 0/2 nodes are available: ",)),
    ],
)
def test_verdict_that_is_not_known_is_told_if_pods_would_otherwise_be_refused(
    cards: int, wanted: tuple[str, ...]
) -> None:
    """The rules of an unlisted scheduler are not known: with deny, its pods that fit nowhere are not refused."""
    pod = make_pod("").gpu(cards).annotate(TYPE, "training").scheduler("slurm").label("app", APP["app"])
    policy = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}, placementCheck={"mode": "deny"}
    )

    warnings = warnings_of(admitted(DEPLOYMENT.object(pod.template(), 2), TWO_NODES, policy))

    assert tuple(each.partition("2 Insufficient")[0] for each in warnings) == wanted


# The cards of a pod and its number in a role that ends with this verdict, on two nodes with 8 cards each.
ROLES = {
    "Infeasible": (template(64), 1),
    "Waiting": (template(8), 3),
    # The rules of this scheduler are not known, and with deny its pods are not refused.
    "Unknown": (
        make_pod("").gpu(64).annotate(TYPE, "training").scheduler("slurm").label("app", APP["app"]).template(),
        1,
    ),
    "Feasible": (template(1), 1),
}


@pytest.mark.parametrize(
    "verdicts",
    [each for number in (2, 3) for each in permutations(ROLES, number) if "Feasible" not in each[1:]],
    ids="-".join,
)
def test_the_role_with_the_worst_verdict_is_reported_in_any_order_of_the_roles(verdicts: tuple[str, ...]) -> None:
    policy = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}, placementCheck={"mode": "deny"}
    )

    found = warnings_of(admitted(ray(*(ROLES[each] for each in verdicts)), TWO_NODES, policy))

    worst = min(verdicts, key=[*ROLES].index)
    first = next(each for each in found if each.startswith("placement check: "))
    assert first.startswith(f"placement check: {worst}: ")
    which = "next" if worst == "Waiting" else "first"
    assert f"; the {which} g{verdicts.index(worst)}: " in first


@pytest.mark.parametrize("worst", ["Infeasible", "Waiting", "Unknown"])
def test_of_roles_with_equal_verdicts_the_first_is_reported(worst: str) -> None:
    policy = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}, placementCheck={"mode": "deny"}
    )

    found = warnings_of(admitted(ray(*(ROLES[each] for each in ("Feasible", worst, worst))), TWO_NODES, policy))

    assert any(" g1: 0/2 nodes are " in each for each in found)


def test_claims_of_more_replicas_than_are_placed_are_not_made() -> None:
    content = stateful_set(2_000_000_000)
    cluster = view(gpu_node("n1"), [make_storage_class("local", provisioner="kubernetes.io/no-provisioner")])

    first, *_ = warnings_of(admitted(content, cluster))

    assert first.startswith("placement check: Infeasible: 0 of 2000000000 replicas fit now") or "Waiting" in first
