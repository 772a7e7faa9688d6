"""A snapshot that is changed in place equals one that is made anew, after any steps."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import said
from webhook.cluster.left_out import LeftOut
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated, with_nodes
from webhook.cluster.working_snapshot import WorkingSnapshot

GPU = "nvidia.com/gpu"
NAMES = "abc"


def of_node(name: str, *pods: RunningPod, **fields: Any) -> NodeInfo:
    return NodeInfo.of(Node.of(make_node_object(name, capacity={"cpu": 8, GPU: 8}, **fields)), pods)


@st.composite
def running_pods(draw: st.DrawFn) -> RunningPod:
    pod = make_pod(draw(st.sampled_from("pqr"))).namespace("x").node_name(draw(st.sampled_from(NAMES)))
    pod = pod.label("app", draw(st.sampled_from(("web", "db"))))
    if cards := draw(st.integers(0, 2)):
        pod = pod.gpu(cards)
    if port := draw(st.sampled_from((0, 80, 81))):
        pod = pod.host_port(port)
    return RunningPod.of(pod.obj())


def infos(pods: list[RunningPod]) -> list[NodeInfo]:
    return [of_node(name, *(each for each in pods if each.node_name == name)) for name in NAMES]


STEPS = st.lists(
    st.tuples(st.sampled_from(("add", "remove", "bind", "end", "facts")), running_pods(), st.integers(0, 5)),
    max_size=10,
)


@given(st.lists(running_pods(), max_size=3), STEPS)
def test_snapshot_in_place_equals_one_made_anew(
    bound: list[RunningPod], steps: list[tuple[str, RunningPod, int]]
) -> None:
    bound = [pod._replace(name=f"bound-{number}") for number, pod in enumerate(bound)]
    base = Snapshot.of(infos(bound))
    working, added = WorkingSnapshot(base), list[RunningPod]()
    sums = {GPU: working.snapshot.requested_in_all(GPU)}
    for index, (step, drawn, number) in enumerate(steps):
        pod = drawn._replace(name=f"{step}-{index}")
        if step == "add":
            working.add(pod)
            added.append(pod)
        elif step == "remove" and added:
            working.remove(added.pop(number % len(added)))
        elif step in ("bind", "end", "facts"):
            changed = base.nodes[base.rows[pod.node_name]]
            if step == "bind":
                changed = changed.with_pods((pod,))
            elif step == "end" and changed.pods:
                changed = changed.without_pod(changed.pods[number % len(changed.pods)])
            elif step == "facts":
                changed = changed._replace(node=of_node(pod.node_name, unschedulable=number > 2).node)
            base = updated(base, [changed], base.generation + 1)
            if not working.follow(base, lambda name: [each for each in added if each.node_name == name]):
                working = WorkingSnapshot(base, added)
        sums[GPU] = working.snapshot.requested_in_all(GPU)

    wanted = Snapshot.of(
        [info.with_pods([each for each in added if each.node_name == info.node.name]) for info in base.nodes]
    )
    assert said(working.snapshot) == said(wanted)
    assert working.snapshot.requested_in_all(GPU) == wanted.requested_in_all(GPU) == sums[GPU]


def test_other_facts_of_the_cluster_need_a_new_copy() -> None:
    base = Snapshot.of(infos([]))
    working = WorkingSnapshot(base)
    same = updated(base, [base.nodes[0].with_pods((RunningPod.of(make_pod("p").node_name("a").obj()),))], 2)
    left_out = updated(base, [], 2)
    left_out.left_out = LeftOut({("Service", "x"): frozenset({"web"})})

    assert working.follow(same, lambda _: ())
    assert not working.follow(left_out, lambda _: ())
    assert not working.follow(Snapshot.of(infos([])), lambda _: ())
    assert working.snapshot.load.pods.tolist() == [1, 0, 0]


@given(
    st.lists(running_pods(), max_size=5),
    st.lists(running_pods(), max_size=5),
    st.sets(st.sampled_from("abcd"), min_size=1),
    st.sampled_from(("", "x")),
)
def test_snapshot_with_other_nodes_and_pods_equals_one_made_anew(
    before: list[RunningPod], after: list[RunningPod], names: set[str], pool: str
) -> None:
    base = Snapshot.of(infos([pod._replace(name=f"before-{number}") for number, pod in enumerate(before)]))
    after = [pod._replace(name=f"after-{number}") for number, pod in enumerate(after)]
    labels = {"pool": pool} if pool else {}
    changed = [
        of_node(name, *(each for each in after if each.node_name == name), labels=labels) for name in sorted(names)
    ]

    found = with_nodes(base, changed, 2)

    assert said(found) == said(Snapshot.of(changed))
    same_names = [each for each in changed if each.node.name in base.rows]
    others = [each for each in base.nodes if each.node.name not in names]
    assert said(updated(base, same_names, 2)) == said(Snapshot.of([*same_names, *others]))
