"""The texts about how many replicas of each role of an object fit."""

from collections.abc import Sequence
from dataclasses import replace

from webhook.documents.text import cut
from webhook.objects.gangs import PREFIX, Advice, Placed

# More roles are summed up, since a warning has 256 bytes.
_MOST_ROLES = 4
_LONGEST_ROLE = 24


def fitting(placed: Sequence[Placed], most: int, *, reports_always: bool) -> Advice:
    """Return the advice if all replicas fit; it warns if it stopped at `most`, or `reports_always`."""
    first = placed[0].found.placement
    summary = replace(first, node=None, message=counts(placed), scores={})
    if all(each.found.is_complete for each in placed):
        return Advice(summary, (f"{PREFIX}{summary.message}",) if reports_always else ())
    summary = replace(summary, verdict="Unknown")
    is_at_limit = sum(each.found.placed for each in placed) >= most
    return Advice(summary, (f"{PREFIX}{summary.message}; the others were not checked",) if is_at_limit else ())


def counts(placed: Sequence[Placed]) -> str:
    """Return a text such as `5 of 8 replicas fit now`, with the numbers of each role if there are several."""
    return f"{suspended(placed)}{_counts_of_roles(placed)}"


def suspended(placed: Sequence[Placed]) -> str:
    """Return the text for a suspended object: the counts are for the pods that it will create later."""
    suspended = placed[0].role.pods.suspended
    return f"no pods are created while {suspended} is set; " if suspended else ""


def _counts_of_roles(placed: Sequence[Placed]) -> str:
    if len(placed) == 1:
        return placed[0].found.text
    is_complete = all(each.found.is_complete for each in placed)
    least = "" if is_complete else "at least "
    if len(placed) > _MOST_ROLES:
        fitting, asked = sum(each.found.placed for each in placed), sum(each.found.asked for each in placed)
        return f"{least}{fitting} of {asked} replicas of {len(placed)} roles fit now"
    counts = [f"{role_name(each) or 'pods'} {each.found.placed} of {each.found.asked}" for each in placed]
    return f"{least}{', '.join(counts)} replicas fit now"


def next_replica(stopped: Placed, roles: int) -> str:
    """Return the text for the first replica that does not fit."""
    which = "the next" if stopped.found.placed else "the first"
    return f"{which} {role_name(stopped) or 'pod'}: " if roles > 1 else f"{which}: "


def role_name(placed: Placed) -> str:
    """Return the role, cut to a length that fits into a warning."""
    return cut(placed.role.pods.role, _LONGEST_ROLE)
