"""The page Policy: the policies in force by namespace, and the decisions that a candidate policy would change."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from placement_console.page import Asked, Endpoint, Sources
from placement_planner.replay.cluster_objects import admissions_of_objects
from placement_planner.replay.policy_comparison import Replay, Report
from placement_planner.replay_sources import ReplaySources
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.live import read_live_workloads
from webhook.cli.output.terminal import remarks_taken
from webhook.cli.output.yaml_text import to_yaml
from webhook.documents.field import FieldError
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set

PLACE = "candidate"
_MOST_CHANGES, _MOST_NAMES, _MOST_NAMESPACES = 100, 10, 500
_CHECKED_EACH = 100


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoints of the page."""
    return (
        Endpoint("/api/policies", partial(_in_force, sources), reported=lambda: ({},)),
        Endpoint("/api/policies/replay", partial(_replayed, sources), method="POST", is_costly=True),
    )


def _in_force(sources: Sources, asked: Asked) -> dict[str, Any]:
    """Return the policies, each with the namespaces of the view in which it is in force."""
    policies, snapshot = sources.session.rules, asked.snapshot
    namespaces: dict[str, list[str]] = {}
    for name, each in sorted(snapshot.namespaces.items()):
        namespaces.setdefault(policies.of_namespace(name, each.labels).identity, []).append(name)
    return {
        "hasNamespaces": bool(snapshot.namespaces),
        "hasFiles": bool(sources.audit),
        "policies": [
            {
                "identity": each.identity,
                "place": sources.session.place_of(each),
                "isDefault": each is policies.default,
                "mode": each.spec.mode,
                "canaryPercent": each.spec.canary_percent,
                "placementCheck": each.spec.placement_check.mode,
                "types": sorted(each.spec.workload_types),
                "count": len(namespaces.get(each.identity, [])),
                "namespaces": namespaces.get(each.identity, [])[:_MOST_NAMESPACES],
                "text": to_yaml(each.document.model_dump(mode="json", by_alias=True)),
            }
            for each in policies
        ],
    }


def _replayed(sources: Sources, asked: Asked) -> dict[str, Any]:
    """Return the changes that a candidate policy makes to decisions on cluster objects or recorded admissions."""
    session = sources.session
    candidate = policy_set(parse_policies(asked.body, PLACE), session.rules.default)
    left_out, unreadable, kinds = Counter[str](), list[FieldError](), candidate.default.kinds
    made = Replay(candidate, session.rules, asked.snapshot)
    is_complete = True
    with remarks_taken() as remarks, ExitStack() as stack:
        if asked.query.get("source") == "audit":
            opened = ReplaySources(sources.audit, unreadable.append, stack)
            admissions, left_out = opened.admissions(kinds), opened.left_out
        else:
            # As if they were created now.
            objects = read_objects(session.cluster) if session.cluster else read_live_workloads(session.source)
            admissions = admissions_of_objects(objects, kinds, left_out)
        for number, each in enumerate(admissions):
            if number % _CHECKED_EACH == 0 and asked.expired():
                is_complete = False
                break
            made.add(each)
    return _report(made.report) | {
        "isComplete": is_complete,
        "leftOut": dict(left_out),
        "unreadable": len(unreadable),
        "remarks": remarks,
    }


def _report(report: Report) -> dict[str, Any]:
    changes = report.sorted_tallies()
    return {
        "pods": report.pods,
        "changed": report.changed,
        "refused": report.refused,
        "worse": report.worse,
        "changes": [
            {
                "kind": change.kind,
                "detail": change.detail,
                "pods": tally.pods,
                "owners": dict(tally.owners.most_common(_MOST_NAMES)),
                "namespaces": dict(tally.namespaces.most_common(_MOST_NAMES)),
            }
            for change, tally in changes[:_MOST_CHANGES]
        ],
        "moreChanges": max(0, len(changes) - _MOST_CHANGES),
    }
