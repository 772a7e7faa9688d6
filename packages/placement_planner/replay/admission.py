"""One recorded admission. Its pod is only read from the source when the replay decides on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from webhook.admission.missed import Scope
from webhook.admission.recorded_pod import RecordedPod
from webhook.documents.documents import JsonObject
from webhook.kube.pod.pod_view import PodView

Read = Callable[[], RecordedPod]


@dataclass(frozen=True, slots=True)
class Admission:
    """The creation of a pod.

    For admissions with equal `key`, `read` returns equal results; `key` is empty if this is not known. `name` and
    `owner`, such as `Job/train`, are only for output. `place` is the place in the source, such as `audit.jsonl:17`.
    `policy` is the recorded policy, `NAME@REVISION`, and `outcome` the recorded outcome; each is empty if it is not
    recorded.
    """

    namespace: str
    name: str
    key: bytes
    read: Read
    user: str = ""
    owner: str = ""
    place: str = ""
    time: str = ""
    policy: str = ""
    outcome: str = ""

    @property
    def pod(self) -> str:
        """Return `NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"


def admission_of(
    pod: JsonObject,
    namespace: str,
    *,
    scope: Scope | None = None,
    name: str = "",
    user: str = "",
    groups: Sequence[str] = (),
    owner: str = "",
    place: str = "",
    time: str = "",
) -> Admission:
    """Return the creation of `pod`, a raw API object, in `namespace`.

    `scope` has the namespace's annotations and labels.
    """
    recorded = RecordedPod(pod, scope, tuple(groups))
    return Admission(namespace, name, key_of(recorded), lambda: recorded, user, owner, place, time)


def key_of(recorded: RecordedPod) -> bytes:
    """Return a key that is equal for pods of one template, or an empty key for a malformed pod."""
    view = PodView.of(recorded.pod)
    if view is None:
        return b""
    data = view.created() + orjson.dumps([recorded.groups, recorded.scope and [*recorded.scope]])
    return blake2b(data, digest_size=16).digest()
