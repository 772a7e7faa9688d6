"""Text output of `check`: a headline, a table of nodes, suggestions, a total."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.command import Outcome, run_here
from webhook.cli.commands.check import print_answer
from webhook.cli.inputs.workloads import Workload
from webhook.cli.output.screen import print_lines, text_console
from webhook.cli.predictions.checked_replicas import Answer
from webhook.documents.documents import Document
from webhook.placement.framework.result import Placement
from webhook.policy.loader import built_in_policy

_NODES = [
    make_node_object("busy", capacity={"nvidia.com/gpu": 8}),
    make_node_object("idle", capacity={"nvidia.com/gpu": 8}),
    make_node_object("plain"),
    make_node_object("vision", taints=["team=vision:NoSchedule"], capacity={"nvidia.com/gpu": 8}),
    make_node_object("other", taints=["team=other:NoSchedule"]),
]
_RUNNING = make_pod("running").node_name("busy").requests(cpu="32").gpu(6).status(phase="Running")
_CLUSTER = [*_NODES, _RUNNING.obj()]

Check = Callable[..., Outcome]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs `check` for pods on `_CLUSTER` with a policy with these fields and with further arguments."""

    def check(*pods: PodBuilder, arguments: tuple[str, ...] = (), policy: Mapping[str, Any] | None = None) -> Outcome:
        files = {
            "pods.json": {"apiVersion": "v1", "kind": "List", "items": [pod.obj() for pod in pods]},
            "cluster.json": {"apiVersion": "v1", "kind": "List", "items": _CLUSTER},
            "policy.json": {
                "apiVersion": "placement.maip.mxsf.io/v1alpha1",
                "kind": "PlacementPolicy",
                "spec": policy or {},
            },
        }
        for name, content in files.items():
            (tmp_path / name).write_text(json.dumps(content))
        given = ["-f", "pods.json", "--cluster", "cluster.json", "--policy", "policy.json"]
        given = [str(tmp_path / each) if each.endswith(".json") else each for each in given]
        return run_here("check", *given, *arguments)

    return check


def answer(placement: Placement, **more: Any) -> Answer:
    """Return the answer for the pod a/b with this placement."""
    document = Document("pod.yaml", make_pod("b").namespace("a").obj())
    return Answer(Workload(document, document, None, built_in_policy()), placement, **more)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (make_pod("worker"), "BestEffort"),
        (make_pod("worker").requests(cpu="1"), "Burstable"),
        (make_pod("worker").limits(cpu="1", memory="1Gi"), "Guaranteed"),
    ],
)
def test_qos_class_of_the_pod_is_named(check: Check, pod: PodBuilder, expected: str) -> None:
    assert f"  QoS class: {expected}" in lines(check(pod).output)


def test_nodes_that_fit_come_first_with_their_scores_and_the_others_with_their_reasons(check: Check) -> None:
    ran = check(make_pod("worker").requests(cpu="4", memory="8Gi").gpu(2))

    assert ran.code == 0
    headline, counts, message, head, idle, busy, *others = lines(ran.output)
    assert [headline, counts, message] == [
        "default/worker: Feasible on idle",
        "  2 of 5 nodes can take it",
        "  2/5 nodes are available.",
    ]
    assert head.split()[:3] == ["node", "total", "TaintToleration"]
    assert [row.split()[0] for row in (idle, busy)] == ["idle", "busy"]
    totals = [int(row.split()[1]) for row in (idle, busy)]
    assert totals == sorted(totals, reverse=True)
    assert totals == [sum(map(int, row.split()[2:])) for row in (idle, busy)]
    assert others == [
        "  other: untolerated taint team=other:NoSchedule",
        "  vision: untolerated taint team=vision:NoSchedule",
        "  plain: wants 2 nvidia.com/gpu, the node has none",
        "  the webhook leaves it alone: no workload type",
        "  QoS class: Burstable",
    ]


def test_a_pod_that_fits_nowhere_gets_suggestions_below(check: Check) -> None:
    ran = check(make_pod("worker").gpu(16))

    not_helpful = "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    assert ran.code == 4
    assert lines(ran.output) == [
        "default/worker: Infeasible",
        "  0 of 5 nodes can take it",
        f"  0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu. {not_helpful}",
        "  other: untolerated taint team=other:NoSchedule",
        "  vision: untolerated taint team=vision:NoSchedule",
        "  busy: wants 16 nvidia.com/gpu, free 2 of 8",
        "  idle: wants 16 nvidia.com/gpu, free 8 of 8",
        "  plain: wants 16 nvidia.com/gpu, the node has none",
        "  the webhook leaves it alone: no workload type",
        "  QoS class: BestEffort",
        "  suggestions:",
        "    - ask for 8 nvidia.com/gpu instead of 16: the largest free block is 8",
    ]


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        pytest.param("2", ["idle", "busy"], id="two"),
        pytest.param("1", ["idle", "  and 1 more that can take it"], id="one"),
        pytest.param("0", ["  and 2 more that can take it"], id="none"),
    ],
)
def test_the_table_of_nodes_that_can_take_the_pod_is_cut(check: Check, most: str, shown: list[str]) -> None:
    ran = check(make_pod("worker").gpu(2), arguments=("--max-nodes", most, "--as-written"))

    rows = [row for row in lines(ran.output)[3:-1] if "total" not in row and ": " not in row]
    assert [row if row.startswith("  and") else row.split()[0] for row in rows] == shown


def test_nodes_are_grouped_by_their_reasons_those_of_most_nodes_first() -> None:
    console = Console(file=io.StringIO(), width=200)
    reasons: dict[str, tuple[str, ...]] = {f"tainted-{n}": ("untolerated taint a=b:NoSchedule",) for n in range(11)}
    reasons |= {f"full-{n}": ("wants 2 cpu, free 1 of 8", "Too many pods") for n in range(3)}
    reasons |= {f"odd-{n}": (f"wants 2Gi memory, free {n}Ki of 8Gi",) for n in range(9)}

    print_answer(console, answer(Placement("Infeasible", None, 23, 0, "0/23"), reasons=reasons), 20)

    assert isinstance(console.file, io.StringIO)
    shown = lines(console.file.getvalue())
    assert shown[3:6] == [
        "  11 nodes: untolerated taint a=b:NoSchedule",
        "  full-0, full-1, full-2: wants 2 cpu, free 1 of 8; Too many pods",
        "  odd-0: wants 2Gi memory, free 0Ki of 8Gi",
    ]
    assert shown[-1] == "  and 3 more nodes for 3 other reasons; -o json has all"


def test_many_pods_have_a_section_each_and_a_total(check: Check) -> None:
    pods = [
        make_pod("fits"),
        make_pod("waits").gpu(7).node_selector("kubernetes.io/hostname", "busy"),
        make_pod("never").gpu(16),
    ]

    ran = check(*pods, arguments=("--max-nodes", "0"))

    assert ran.code == 4
    heads = [line for line in lines(ran.output) if not line.startswith(" ")]
    assert heads == [
        "default/fits: Feasible on idle",
        "default/waits: Waiting",
        "default/never: Infeasible",
        "3 pods: 1 Feasible, 1 Waiting, 1 Infeasible",
    ]


def test_a_denied_pod_is_counted(check: Check) -> None:
    bad = make_pod("bad").annotate("maip.mxsf.io/workload-type", "trainning")

    ran = check(make_pod("good"), bad, arguments=("--mutate", "--max-nodes", "0"))

    assert ran.code == 5
    assert lines(ran.output)[-1] == "2 pods: 1 Feasible, 1 Refused"
    assert ": default/bad: metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value" in ran.errors


def test_node_templates_of_the_policy_count(check: Check) -> None:
    template = {"name": "gpu-h20", "capacity": {"cpu": 64, "memory": "1Ti", "nvidia.com/gpu": 16}}

    ran = check(make_pod("worker").gpu(16), policy={"nodeTemplates": [template]}, arguments=("-o", "json"))

    assert ran.code == 3
    found = json.loads(ran.output)
    assert found["verdict"] == "Waiting"
    assert found["message"].endswith(
        "3 Insufficient nvidia.com/gpu. preemption: 0/5 nodes are available: "
        "5 Preemption is not helpful for scheduling. Node template gpu-h20 could take it."
    )
    assert found["suggestions"][0] == "ask for 8 nvidia.com/gpu instead of 16: the largest free block is 8"


def test_nothing_is_coloured_or_folded_without_a_terminal(check: Check) -> None:
    long = "x" * 200

    ran = check(make_pod("worker").node_selector("pool", long[:63]).gpu(16))

    assert "\x1b" not in ran.output
    assert any(len(line) > 120 for line in lines(ran.output))


def test_a_terminal_gets_colours() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system="standard", highlight=False)

    print_answer(console, answer(Placement("Infeasible", None, 1, 0, "0/1 [x]"), reasons={"n": ("[why]",)}), 20)

    assert "\x1b[31mInfeasible\x1b[0m" in screen.getvalue()
    assert "0/1 [x]" in screen.getvalue()
    assert "[why]" in screen.getvalue()


def test_a_pipe_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert text_console().width > 1000


_GATED = make_pod("worker").gpu(8).spec(schedulingGates=[{"name": "example.com/quota"}])


@pytest.mark.parametrize(
    ("pod", "verdict", "named"),
    [
        pytest.param(make_pod("worker").gpu(8).requests(cpu="33"), "Waiting", ["busy"], id="taken by running pods"),
        pytest.param(make_pod("worker").gpu(16), "Infeasible", [], id="never"),
        pytest.param(make_pod("worker").gpu(2), "Feasible", [], id="now"),
        pytest.param(_GATED, "Waiting", [], id="gated"),
    ],
)
def test_waiting_pod_names_the_nodes_that_running_pods_take(
    check: Check, pod: PodBuilder, verdict: str, named: list[str]
) -> None:
    """The message is the same for a pod that waits for others and for one that never fits."""
    output = check(pod.node_selector("kubernetes.io/hostname", "busy")).output

    assert output.startswith(f"default/worker: {verdict}")
    assert [line for line in lines(output) if "would fit" in line and "running pods" in line] == [
        f"  would fit if running pods were gone: {', '.join(named)}"
    ] * bool(named)


def test_many_nodes_are_counted() -> None:
    console = Console(file=io.StringIO(), width=200)
    placement = Placement("Waiting", None, 9, 0, "0/9 nodes are available: 9 Insufficient cpu.")

    print_answer(console, answer(placement, without_pods=tuple(f"n{number}" for number in range(9))), 0)

    assert isinstance(console.file, io.StringIO)
    assert "  would fit if running pods were gone: n0, n1, n2, n3, n4 and 4 more\n" in console.file.getvalue()


def test_continuation_lines_keep_the_indent() -> None:
    console = Console(file=io.StringIO(), width=20, force_terminal=True, color_system=None)

    print_lines(console, ["three words that fold", "  - one more suggestion"])

    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined] # a StringIO
        "  three words that",
        "  fold",
        "    - one more",
        "      suggestion",
    ]


def shown(found: Answer, max_nodes: int = 20) -> list[str]:
    out = io.StringIO()
    print_answer(Console(file=out, width=120), found, max_nodes)
    return lines(out.getvalue())


def test_nodes_of_equal_scores_are_in_the_order_of_their_names_up_to_a_limit() -> None:
    scores = {name: {"total": total, "Fit": total} for name, total in {"c": 1, "b": 2, "a": 1, "d": 1}.items()}
    placement = Placement("Feasible", "b", 4, 4, "", scores)

    assert [line.split()[:2] for line in shown(answer(placement), 3)[-4:]] == [
        ["b", "2"],
        ["a", "1"],
        ["c", "1"],
        ["and", "1"],
    ]


MORE = "  and 4 more nodes for 2 other reasons; -o json has all"


@pytest.mark.parametrize(("reasons", "left_out"), [(8, []), (10, [MORE])])
def test_the_reasons_of_the_most_nodes_are_shown_and_the_nodes_of_the_others_counted(
    reasons: int, left_out: list[str]
) -> None:
    by_node = {f"n-{number}-{each}": [f"reason {number}"] for number in range(reasons - 1) for each in "ab"}
    by_node |= {f"many-{each}": ["reason of many"] for each in range(4)}

    found = shown(answer(Placement("Infeasible", None, 9, 0, "no"), reasons=by_node))

    assert [line for line in found if line.startswith("  and ")] == left_out
    assert found[3:5] == ["  4 nodes: reason of many", "  n-0-a, n-0-b: reason 0"]


def test_why_a_verdict_is_not_sure_and_what_was_not_looked_at_are_lines() -> None:
    placement = Placement("Infeasible", None, 1, 0, "no", unmodelled=("A", "B"), deny_exemption="a volume")

    found = shown(answer(placement, bypass="no workload type", overdue=("late",), completed_by=("LimitRange x",)))

    for line in (
        "  not sure: a volume",
        "  not looked at: A, B",
        "  the webhook leaves it alone: no workload type",
        "  late",
        "  the API server adds to it by LimitRange x",
    ):
        assert line in found


def test_on_a_narrow_terminal_the_scores_that_differ_most_are_kept() -> None:
    scores = {
        "a": {"total": 30, "Far": 10, "Equal": 10, "Near": 10},
        "b": {"total": 22, "Far": 3, "Equal": 10, "Near": 9},
    }
    found = answer(Placement("Feasible", "a", 2, 2, "", scores))

    heads = {}
    for width in (80, 31, 30, 23):
        screen = io.StringIO()
        print_answer(Console(file=screen, width=width, force_terminal=True, color_system=None), found, 20)
        heads[width] = next(line.split() for line in screen.getvalue().splitlines() if line.startswith("  node"))

    assert list(heads.values()) == [
        ["node", "total", "Far", "Equal", "Near"],
        ["node", "total", "Far", "Equal", "Near"],
        ["node", "total", "Far", "Near"],
        ["node", "total", "Far"],
    ]
