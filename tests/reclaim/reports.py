"""The report on objects, as the command makes it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from placement_reclaim.classes.pods import PodUse
from placement_reclaim.cluster import Objects
from placement_reclaim.effects import Effects, effects_of
from placement_reclaim.held import Held
from placement_reclaim.report import held_rows
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import NOW_SECONDS
from webhook.cli.inputs.profiles import read_schedulers
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy

FIVE_MINUTES = 300
NO_USES: Mapping[tuple[str, str], PodUse] = {}


def report(
    *given: dict[str, Any] | PodBuilder,
    older_than: int = FIVE_MINUTES,
    uses: Mapping[tuple[str, str], PodUse] = NO_USES,
) -> list[Held]:
    """Return the rows on the objects `given`, with the uses of their cards."""
    return held_rows(objects_of(given), NOW_SECONDS, older_than, uses)


def effects(*given: dict[str, Any] | PodBuilder, evidence: SchedulerEvidence | None = None) -> Effects:
    """Return what starts without the pods that are reported on the objects `given`."""
    objects = objects_of(given)
    objects.snapshot = replace(objects.snapshot, scheduler_evidence=evidence)
    scorer = read_schedulers(None, None, explains=False)(built_in_policy()).for_pending()
    return effects_of(report(*given), objects, scorer)


def objects_of(given: Iterable[dict[str, Any] | PodBuilder]) -> Objects:
    """Return the objects `given` and their snapshot."""
    contents = [each.obj() if isinstance(each, PodBuilder) else each for each in given]
    documents = [Document("the test", each) for each in contents]
    objects = Objects(built_in_policy(), snapshot_from_documents(documents))
    for each in contents:
        objects.take(each)
    return objects


def names(rows: list[Held]) -> list[tuple[str, str]]:
    """Return class and name of each row."""
    return [(each.reason, each.name) for each in rows]
