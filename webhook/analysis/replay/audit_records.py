"""The admissions in the records of `serve --audit-pods`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from webhook.admission.recorded_pod import RecordedPod
from webhook.analysis.replay.admission import Admission
from webhook.analysis.replay.source_line import OnInvalid, unreadable_line
from webhook.audit.pods import PodIndex
from webhook.audit.record import POD
from webhook.documents.field import InvalidInput, invalid
from webhook.kube.names import DEFAULT_NAMESPACE

NO_POD = "record without a pod: of a server without --audit-pods, or of a pod that was not kept"
GONE = "record whose pod is not in FILE.pods: it was replaced by newer ones, or the file is not here"
NOT_A_POD = "record of another object or operation"
DRY_RUN = "dry run"


class _Named(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    revision: str = ""


class _Record(msgspec.Struct, gc=False, rename="camel"):
    """The keys of a record that a replay reads. `webhook.audit.record` has all."""

    time: str
    decision: str
    namespace: str
    name: str
    operation: str
    user: str
    dry_run: bool
    hash: str
    outcome: str = ""
    owner: _Named | None = None
    policy: _Named | None = None
    kind: str = POD
    pod: str = ""


_decode = msgspec.json.Decoder(_Record).decode


def admissions_of_records(
    lines: Iterable[tuple[str, bytes]], pods: PodIndex, left_out: Counter[str], on_invalid: OnInvalid
) -> Iterator[Admission]:
    """Yield the creations of pods in the `lines`, each with its place; count the other records in `left_out`.

    A line that is no record goes to `on_invalid`.
    """
    for place, line in lines:
        try:
            record = _decode(line)
        except (msgspec.DecodeError, UnicodeError) as error:
            on_invalid(unreadable_line(place, line, "an audit record", str(error)))
            continue
        if reason := _reason_to_leave_out(record, pods):
            left_out[reason] += 1
            continue
        owner, policy = record.owner, record.policy
        yield Admission(
            record.namespace or DEFAULT_NAMESPACE,
            record.name,
            bytes.fromhex(record.pod),
            partial(_read, pods, record.pod, place),
            record.user,
            f"{owner.kind}/{owner.name}" if owner is not None else "",
            place,
            record.time,
            f"{policy.name}@{policy.revision}" if policy is not None else "",
            record.outcome,
        )


def _reason_to_leave_out(record: _Record, pods: PodIndex) -> str:
    if record.kind != POD or record.operation != "CREATE":
        return NOT_A_POD
    if record.dry_run:
        return DRY_RUN
    if not record.pod:
        return NO_POD
    return "" if record.pod in pods else GONE


def _read(pods: PodIndex, digest: str, place: str) -> RecordedPod:
    content = pods.content(digest) or b""
    try:
        return RecordedPod.parse(content)
    except ValueError as error:
        raise InvalidInput([invalid(f"{place}: pod", digest, f"cannot be read in FILE.pods: {error}")]) from error
