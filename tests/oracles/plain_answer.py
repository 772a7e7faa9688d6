"""The answer of the placement check in the form of the plain one."""

from tests.oracles import oracle
from webhook.placement.scheduler import Placement


def as_plain(placement: Placement) -> oracle.OracleAnswer:
    """Return the part of `placement` that the plain check computes, too."""
    return oracle.OracleAnswer(
        placement.verdict,
        placement.node,
        placement.total,
        placement.feasible,
        placement.message,
        {node: {plugin: int(score) for plugin, score in scores.items()} for node, scores in placement.scores.items()},
    )
