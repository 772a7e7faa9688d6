"""The report on objects, as the command makes it."""

from collections.abc import Iterable, Mapping
from typing import Any

from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.classes.idle import PodUse
from placement_reclaim.cluster import Objects
from placement_reclaim.effects import Effects, Waiting
from placement_reclaim.held import Held
from placement_reclaim.report import Selection, held_rows
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import NOW_SECONDS
from webhook.cli.inputs.profiles import read_schedulers
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy

FIVE_MINUTES = 300
NO_USES: Mapping[tuple[str, str], PodUse] = {}


def report(
    *given: dict[str, Any] | PodBuilder,
    older_than: int = FIVE_MINUTES,
    uses: Mapping[tuple[str, str], PodUse] = NO_USES,
    **selection: Any,
) -> list[Held]:
    """Return the rows on the objects `given`, with the uses of their cards."""
    objects, snapshot = _read(given)
    return held_rows(snapshot, objects, built_in_policy(), Selection(older_than, **selection), NOW_SECONDS, uses)


def effects(*given: dict[str, Any] | PodBuilder) -> Effects:
    """Return what starts without the pods that are reported on the objects `given`."""
    policy, (objects, snapshot) = built_in_policy(), _read(given)
    scorer = read_schedulers(None, None, explains=False)(policy).for_pending()
    gang_of = GangOf(snapshot, policy)
    waiting = Waiting(snapshot, objects.pending, objects.pods, gang_of, scorer, policy.spec.schedulers)
    return waiting.effects(report(*given))


def _read(given: Iterable[dict[str, Any] | PodBuilder]) -> tuple[Objects, Snapshot]:
    contents = [each.obj() if isinstance(each, PodBuilder) else each for each in given]
    objects = Objects(tuple(built_in_policy().spec.accelerators))
    for each in contents:
        objects.take(each)
    return objects, snapshot_from_documents([Document("the test", each) for each in contents])


def names(rows: list[Held]) -> list[tuple[str, str]]:
    """Return class and name of each row."""
    return [(each.reason, each.name) for each in rows]
