"""`capacity --drain`: the pods of drained nodes, and where they fit."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from rich.console import Console

from webhook.cli.pending import Reserved
from webhook.cli.screen import marked
from webhook.cli.table import Column, Row, print_table
from webhook.cluster.bound_pods import BoundPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.field import InvalidInput, invalid
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.placement.capacity.drain import Drain, DrainedPod

# The names of one line.
_MOST_NAMES = 5
_MOST_CLOSE = 3

UNKNOWN_BUDGETS = "PodDisruptionBudgets are not known; `kubectl get nodes,pods,namespaces,pdb -A -o json` prints them"


def check_nodes(names: Iterable[str], snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names of the nodes to drain, each once; several can be in one text, separated by commas.

    Raises:
        InvalidInput: a node is not in the snapshot.
    """
    asked = tuple(dict.fromkeys(name for text in names for name in text.split(",")))
    errors = []
    for name in asked:
        if name not in snapshot.rows:
            close = get_close_matches(name, snapshot.rows, _MOST_CLOSE, 0.0)
            detail = f"the cluster has no such node; the nearest names: {', '.join(close)}"
            errors.append(invalid("--drain", name, detail))
    if errors:
        raise InvalidInput(errors)
    return asked


def drain_to_json(found: Drain, reserved: Reserved) -> dict[str, Any]:
    """Return the line of the drain in `capacity -o json`; the pending pods `reserved` took their places first."""
    line = {
        "drain": list(found.nodes),
        "fits": found.fitting,
        "of": found.replaced,
        "pods": [_pod_to_json(each) for each in found.pods],
        "stays": [pod.full_name for pod in found.staying],
        "terminating": [pod.full_name for pod in found.ending],
        "budgetsKnown": found.knows_budgets,
    }
    return line | ({"reserved": reserved.to_json()} if reserved else {})


def _pod_to_json(each: DrainedPod) -> dict[str, Any]:
    return {
        "pod": each.pod.full_name,
        "controller": str(each.pod.controller) if each.pod.controller else None,
        "from": each.pod.node,
        "to": each.node,
        "outcome": each.outcome,
        "message": each.message,
        "evictionRefused": each.refusal or None,
        "losesLocalData": each.pod.has_empty_dir,
        "losesWork": loses_work(each.pod),
    }


def loses_work(pod: BoundPod) -> bool:
    """Return true if the pod begins its work again, or never, when it is deleted."""
    return pod.controller is None or pod.controller.is_job


def print_drain(console: Console, found: Drain, reserved: Reserved, max_nodes: int) -> None:
    """Print where the pods fit, those that fit nowhere first, what else happens, and the counts at the end.

    At most `max_nodes` of the pods that fit have a line. The pending pods `reserved` took their places first.
    """
    console.print(f"[bold]drain of {marked(_names(found.nodes))}[/bold]:")
    if reserved:
        console.print(f"  {marked(reserved.text)}")
    fitting = [each for each in found.pods if each.outcome == "Fits"]
    others = [each for each in found.pods if each.outcome not in ("Fits", "Lost")]
    shown = [*others, *fitting[:max_nodes]]
    if shown:
        columns = [
            Column("pod", least=20),
            Column("from", least=8),
            Column("to", least=8),
            Column("why not", least=30, folds=True),
        ]
        columns = columns if others else columns[:-1]
        rows = [
            Row([each.pod.full_name, each.pod.node, each.node or "-", each.message][: len(columns)]) for each in shown
        ]
        print_table(console, columns, rows, indent=2)
    if left_out := len(fitting) - len(fitting[:max_nodes]):
        console.print(f"  and {left_out} more that fit")
    for remark in _remarks(found):
        console.print(f"  {marked(remark)}")
    console.print(f"[bold]{found.text}[/bold]")


def _remarks(found: Drain) -> list[str]:
    pods = [each.pod for each in found.pods]
    placed = [each.pod for each in found.pods if each.outcome != "Lost"]
    lost = [each.pod for each in found.pods if each.outcome == "Lost"]
    mirrors = [pod for pod in found.staying if pod.is_mirror]
    daemons = [pod for pod in found.staying if not pod.is_mirror]
    remarks = [
        _remark("without a controller: lost; kubectl drain refuses them without --force", lost),
        _remark(
            "with emptyDir volumes: the data are lost; kubectl drain refuses them without --delete-emptydir-data",
            [pod for pod in pods if pod.has_empty_dir],
        ),
        _remark(
            "of Jobs: their work begins again", [pod for pod in placed if pod.controller and pod.controller.is_job]
        ),
        _remark(
            "of other schedulers: placed here as kube-scheduler would",
            [pod for pod in placed if pod.scheduler != DEFAULT_SCHEDULER],
        ),
        _remark("of DaemonSets: they stay; kubectl drain refuses them without --ignore-daemonsets", daemons),
        _remark("managed by the kubelet (mirror pods): they stay", mirrors),
        _remark("that are already being deleted", found.ending),
    ]
    refused: dict[str, list[BoundPod]] = {}
    for each in found.pods:
        if each.refusal:
            refused.setdefault(each.refusal, []).append(each.pod)
    remarks += [_remark(f"whose eviction is refused now: {refusal}", blocked) for refusal, blocked in refused.items()]
    remarks += [] if found.knows_budgets else [UNKNOWN_BUDGETS]
    return [remark for remark in remarks if remark]


def _remark(text: str, pods: Sequence[BoundPod]) -> str:
    noun = "pod" if len(pods) == 1 else "pods"
    return f"{len(pods)} {noun} {text}: {_names([pod.full_name for pod in pods])}" if pods else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
