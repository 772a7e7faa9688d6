"""The page Try: the webhook's changes to a manifest, the nodes that take its pods, and how many more would fit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from placement_console.evictions import evictions_json
from placement_console.page import Asked, Endpoint, Sources
from placement_planner.capacity_counts import Counts, ProgressOf
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.cli.inputs.manifests import with_namespace
from webhook.cli.inputs.workloads import Workload, print_misplaced
from webhook.cli.output.terminal import remarks_taken
from webhook.cli.output.yaml_text import diff_lines
from webhook.cli.predictions.admission import Admissions, admit_document
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cli.predictions.replica_check import Checks
from webhook.cluster.planned_objects import with_planned_objects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import parse
from webhook.documents.field import FieldError, InvalidInput, invalid
from webhook.documents.text import cut
from webhook.kube.api.json_patch import patched
from webhook.kube.deadline import Expired
from webhook.kube.workloads.pod_set import pod_name

PLACE = "manifest"
_MOST_TEMPLATES, _MOST_PODS = 50, 2000
# Nodes whose scores are sent, and further pods that are counted: the page draws no more.
_MOST_SCORED, _MOST_FURTHER = 60, 1000
_MOST_SHOWN = 2000


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoint of the page."""
    return (Endpoint("/api/try", partial(_tried, sources), method="POST", is_costly=True),)


def _tried(sources: Sources, asked: Asked) -> object:
    """Return the result for each pod template of the manifest, and the lines that a command prints on standard error.

    Raises:
        InvalidInput: the manifest cannot be read, has no pods, or has too many pods.
    """
    session, documents = sources.session, parse(asked.body, PLACE)
    if namespace := asked.query.get("namespace", ""):
        documents = with_namespace(documents, namespace)
    snapshot = with_planned_objects(asked.snapshot, documents)
    with remarks_taken() as remarks:
        workloads = session.workloads_of(documents, snapshot)
        _check_size(workloads)
        print_misplaced(workloads, snapshot)
        queue, admissions = session.queue(snapshot), Admissions(True, session.schedulers)
        answers = Checks(queue, admissions).answers(workloads)
        counts = Counts(queue, admissions, _MOST_FURTHER, _progress(asked.expired), _fail)
        found = [{**_admission(each, snapshot), **_placement(each), **_further(counts, each)} for each in answers]
    return {"pods": found, "remarks": remarks}


def _check_size(workloads: Sequence[Workload]) -> None:
    pods = sum((each.pods.replicas if each.pods else None) or 1 for each in workloads)
    if not workloads:
        raise InvalidInput([invalid(PLACE, "", "holds no pod and nothing that makes one")])
    if len(workloads) > _MOST_TEMPLATES or pods > _MOST_PODS:
        most = f"at most {_MOST_TEMPLATES} pod templates with {_MOST_PODS} pods; `check` takes more"
        raise InvalidInput([invalid(PLACE, f"{len(workloads)} templates, {pods} pods", most)])


def _admission(answer: Answer, snapshot: Snapshot) -> dict[str, Any]:
    """Return the decision of the webhook on the first pod of a template."""
    workload = answer.workload
    before = workload.document.content
    found: dict[str, Any] = {"outcome": "Invalid", "diff": [], "operations": [], "rules": [], "warnings": []}
    if answer.faults or workload.pods is None:
        return found
    verdict = admit_document(workload.document, workload.policy, ClusterView(snapshot, scorer=None))
    found |= {
        "outcome": verdict.outcome,
        "type": verdict.workload_type,
        "warnings": [workload.located(each) for each in verdict.warnings],
        "reason": answer.refusal or answer.bypass,
        "policyInForce": workload.policy.identity,
    }
    if not isinstance(verdict, Bypassed | Denied):
        found["rules"] = [asdict(each) for each in verdict.rules]
    if verdict.outcome == "Patched":
        found["operations"] = verdict.operations
        after = patched(before, verdict.operations)
        found["diff"] = [cut(line, _MOST_SHOWN) for line in diff_lines(before, after, pod_name(before))]
    return found


def _placement(answer: Answer) -> dict[str, Any]:
    """Return the line of `check -o json` with only the best scores, and the other lines of `check` as text."""
    line = answer.to_json()
    ranked = sorted(line["scores"].items(), key=lambda item: (-item[1]["total"], item[0]))
    return line | {
        "title": answer.workload.title or answer.workload.name,
        "scores": [{"node": node, **scores} for node, scores in ranked[:_MOST_SCORED]],
        "replicasText": answer.replicas_text,
        "gang": answer.gang_lines,
        **evictions_json(answer),
        "reservedText": answer.reserved.text,
        "faults": [str(each) for each in answer.faults],
        "withoutPending": list(answer.without_pending),
        "withoutPods": list(answer.without_pods),
    }


def _further(counts: Counts, answer: Answer) -> Mapping[str, Any]:
    """Return the number of pods of the template that fit on the current cluster, and their nodes."""
    if answer.verdict in ("Invalid", "Refused", "Unknown"):
        return {}
    try:
        (counted,) = counts.each([answer.workload])
    except TimeoutError:
        return {}
    count = counted.count
    return {
        "further": {
            "fits": count.fits,
            "nodes": dict(count.nodes),
            "isMore": count.fits >= _MOST_FURTHER or not count.is_complete,
            "stoppedBy": count.stopped.message if count.stopped else "",
        }
    }


def _progress(expired: Expired) -> ProgressOf:
    """Return a progress function that ends a count with a TimeoutError when the time for the answer is over."""

    def on_placed(_: int) -> None:
        if expired():
            raise TimeoutError

    return lambda _: on_placed


def _fail(errors: Sequence[FieldError]) -> None:
    raise InvalidInput(errors)
