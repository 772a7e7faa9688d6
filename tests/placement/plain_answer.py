"""The answer of the placement check in the form of the plain one."""

from tests.placement import oracle
from webhook.placement.scheduler import Placement


def as_plain(placement: Placement) -> oracle.OracleAnswer:
    """What `placement` says that the plain check says, too."""
    return oracle.OracleAnswer(
        placement.verdict,
        placement.node,
        placement.total,
        placement.feasible,
        placement.message,
        {node: dict(scores) for node, scores in placement.scores.items()},
    )
