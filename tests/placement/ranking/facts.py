"""What a ranking says."""

from typing import Any

from webhook.placement.framework.result import Placement


def facts(placement: Placement) -> tuple[Any, ...]:
    best = None if placement.best_rows is None else placement.best_rows.tolist()
    feasible = None if placement.feasible_mask is None else placement.feasible_mask.tolist()
    return placement, best, feasible
