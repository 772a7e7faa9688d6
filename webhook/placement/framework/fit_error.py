"""The message of a scheduler about a pod that no node can take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """The messages of a scheduler: the `heading` before its reasons, and its own text for some reasons.

    `pre_filter` returns the text for a number of nodes that a pre-filter rejects for a reason. `note` names the part of
    the scheduling that is predicted, or is empty if all of it is.
    """

    heading: str = "0/{total} nodes are available"
    reason: Callable[[str], str] = str
    pre_filter: Callable[[int, str], str] = "0/{} nodes are available: {}.".format
    note: str = ""


KUBE_SCHEDULER = Wording()


def fit_error(
    total: int, reasons: Mapping[str, int], pre_filter_msg: str = "", wording: Wording = KUBE_SCHEDULER
) -> str:
    """Return the message of a scheduler if none of `total` nodes is feasible, as in kube-scheduler's Event.

    `reasons` counts the nodes rejected for each reason. `pre_filter_msg` replaces them if a pre-filter rejected all.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, FitError.Error
    """
    if pre_filter_msg:
        return wording.pre_filter(total, pre_filter_msg)
    parts = ", ".join(sorted(f"{count} {wording.reason(reason)}" for reason, count in reasons.items()))
    return f"{wording.heading.format(total=total)}: {parts}."


def with_templates(message: str, templates: Sequence[str]) -> str:
    """Return `message` and a sentence with the node templates that could take the pod."""
    noun = "Node template" if len(templates) == 1 else "Node templates"
    return f"{message.removesuffix('.')}. {noun} {', '.join(templates)} could take it."
