"""The trace, the cluster, the policies and the profiles of `simulate`."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from placement_planner.replay.admission import Admission
from placement_planner.replay_sources import ReplaySources
from placement_planner.simulation.api_audit import read_api_audit_log
from placement_planner.simulation.arrival import Arrival, CreatedPods, Load, from_first
from placement_planner.simulation.plain_csv import read_plain_csv
from placement_planner.simulation.sweep import Experiment
from webhook.audit.reading import rotated_files
from webhook.audit.record import BEGINNING, moment
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.files import STANDARD_INPUT, place_of, read_text
from webhook.cli.inputs.policies import read_policies
from webhook.documents.documents import field
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
    """Return the inputs that all runs share. Small files are read before large ones.

    Raises:
        InvalidInput: a file cannot be read or is malformed, or a profile does not exist.
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
    experiment.cluster = tuple(read_objects(cluster))
    # Errors of the cluster come before the runs.
    _ = experiment.snapshot
    return experiment


def _read_trace(filename: str, is_card: Callable[[str], bool]) -> list[Arrival]:
    data, place = read_text(filename, _TRACE), place_of(filename)
    if data.startswith(_GZIP):
        detail = f"is compressed; pipe it: `zcat {filename} | placement-webhook simulate --trace - …`"
        raise InvalidInput([invalid(_TRACE, filename, detail)])
    if data.startswith(BEGINNING):
        return _read_records(filename, is_card)
    if data.lstrip().startswith(b"{"):
        return read_api_audit_log(data, place, is_card)
    return read_plain_csv(data, place, is_card)


def _read_records(filename: str, is_card: Callable[[str], bool]) -> list[Arrival]:
    """Return the pods of an audit file and its rotated files that were not denied."""
    if filename == STANDARD_INPUT:
        detail = "audit records need the FILE.pods beside them: give their file"
        raise InvalidInput([forbidden(_TRACE, detail)])
    created_pods = CreatedPods(is_card)
    with ExitStack() as stack:
        opened = ReplaySources(rotated_files(Path(filename)), _stop, stack, _TRACE)
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
