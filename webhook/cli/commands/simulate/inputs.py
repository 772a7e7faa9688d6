"""The trace, the cluster, the policies and the profiles of `simulate`."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from webhook.analysis.replay.admission import Admission
from webhook.analysis.simulation.api_audit import read_api_audit_log
from webhook.analysis.simulation.arrival import Arrival, CreatedPods, Load, from_first
from webhook.analysis.simulation.openb import is_openb, read_nodes, read_openb_pods
from webhook.analysis.simulation.plain_csv import read_plain_csv
from webhook.analysis.simulation.sweep import Experiment
from webhook.audit.archive import is_archive
from webhook.audit.record import BEGINNING, moment
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.files import STANDARD_INPUT, place_of, read_text
from webhook.cli.inputs.policies import read_policies
from webhook.cli.records.replay_sources import ReplaySources
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document, field
from webhook.documents.field import FieldError, InvalidInput, forbidden, invalid, unsupported
from webhook.placement.profiles.profile import PROFILES
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

_CONFIG = "--scheduler-config"
_BUILT_IN = "built-in"
_TRACE = "--trace"
_GZIP = b"\x1f\x8b"


def read_experiment(
    trace: str,
    cluster: str,
    policies: Sequence[Path],
    profiles: Sequence[str],
    scheduler_config: str | None,
    load: Load,
) -> Experiment:
    """Return what all runs share; small files are read before large ones.

    Raises:
        InvalidInput: a file cannot be read or is malformed, or there is no profile of a name.
    """
    known = tuple((str(path), read_policies([path])) for path in policies) or (
        (_BUILT_IN, PolicySet(built_in_policy())),
    )
    config = (read_text(scheduler_config, _CONFIG), place_of(scheduler_config)) if scheduler_config else None
    experiment = Experiment((), (), known, load, config)
    names = PROFILES if experiment.profiles is None else experiment.profiles
    for name in profiles:
        if name not in names:
            raise InvalidInput([unsupported("--scheduler-profile", name, names)])
    experiment.trace = tuple(_read_trace(trace, experiment.is_card))
    experiment.cluster = tuple(_read_cluster(cluster, known[0][1].default.node_usage_key))
    # Errors of the cluster come before the runs.
    _ = experiment.snapshot
    return experiment


def _read_trace(filename: str, is_card: Callable[[str], bool]) -> list[Arrival]:
    if filename != STANDARD_INPUT and is_archive(Path(filename)):
        return _read_records(filename, is_card)
    data, place = read_text(filename, _TRACE), place_of(filename)
    if data.startswith(_GZIP):
        detail = f"is compressed; pipe it: `zcat {filename} | placement-webhook simulate --trace - …`"
        raise InvalidInput([invalid(_TRACE, filename, detail)])
    if data.startswith(BEGINNING):
        return _read_records(filename, is_card)
    if data.lstrip().startswith(b"{"):
        return read_api_audit_log(data, place, is_card)
    if is_openb(data, place):
        found = read_openb_pods(data, place)
        if not found:
            raise InvalidInput([invalid(place, "no pod", "must have a pod that requests a GPU")])
        return found
    return read_plain_csv(data, place, is_card)


def _read_records(filename: str, is_card: Callable[[str], bool]) -> list[Arrival]:
    """Return the pods of an audit file, or of an archive, that were not refused."""
    if filename == STANDARD_INPUT:
        detail = "audit records need the FILE.pods beside them: give their file, or an archive of `audit export`"
        raise InvalidInput([forbidden(_TRACE, detail)])
    created_pods = CreatedPods(is_card)
    with ExitStack() as stack:
        opened = ReplaySources([filename], _stop, stack, _TRACE)
        found = [
            created_pods.arrival(_seconds(each), each.namespace, pod, each.place)
            for each in opened.admissions({})
            if each.outcome != "Denied" and not field(pod := each.read().pod, "spec", "nodeName")
        ]
    if not found:
        reasons = "".join(f"; {count} × {reason}" for reason, count in opened.left_out.most_common())
        detail = f"must have the record of a pod that was admitted{reasons}"
        raise InvalidInput([invalid(place_of(filename), "no pod", detail)])
    return from_first(found)


def _seconds(admission: Admission) -> float:
    try:
        return moment(admission.time).timestamp()
    except ValueError as error:
        raise InvalidInput([invalid(admission.place, admission.time, str(error))]) from None


def _stop(error: FieldError) -> None:
    raise InvalidInput([error])


def _read_cluster(filename: str, pool_label: str) -> Sequence[Document]:
    if filename.endswith(".csv"):
        place = place_of(filename)
        nodes = [Document(place, each) for each in read_nodes(read_text(filename, "--cluster"), place, pool_label)]
        snapshot_from_documents(nodes)
        return nodes
    return read_objects(filename)
