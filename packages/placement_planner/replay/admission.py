"""One recorded admission, which is read from its source when it has to be decided on."""

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

    Pods with equal `key` give equal results of `read`. It is empty if that is not known. `name` and `owner`, such
    as `Job/train`, are for people. `place` is that in the source, such as `audit.jsonl:17`, and `policy` the recorded
    policy, `NAME@REVISION`, and `outcome` the recorded one, or empty if there is none.
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
    """Return the creation of `pod`, a raw API object, in `namespace`, whose annotations and labels `scope` has."""
    recorded = RecordedPod(pod, scope, tuple(groups))
    return Admission(namespace, name, key_of(recorded), lambda: recorded, user, owner, place, time)


def key_of(recorded: RecordedPod) -> bytes:
    """Return a key that is equal for pods of one template. It is empty for a malformed pod."""
    view = PodView.of(recorded.pod)
    if view is None:
        return b""
    data = view.created() + orjson.dumps([recorded.groups, recorded.scope and [*recorded.scope]])
    return blake2b(data, digest_size=16).digest()
