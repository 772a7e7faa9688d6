"""The injection for a pod, and the facts that are read from the mutated pod on first use."""

from msgspec.structs import replace

from webhook.admission.injection import Injection
from webhook.admission.pod_content import PodContent
from webhook.cluster.pods.pending_pods import content_digest, scheduled_content
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, forbidden
from webhook.kube.api.json_patch import patched
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.pod.pod_status import MISSING
from webhook.kube.pod.pod_view import PodView
from webhook.kube.pod.qos import QosClass, qos_class
from webhook.placement.scorer import PodSignature, deadline_reader
from webhook.placement.waiting.pending_placement import WaitingPod, running_pod
from webhook.runtime.byte_cache import parsed_bytes

# The scheduler skips a pod if it would have to read more of it.
MAX_SCORED_BYTES = 256 * 1024
_UNREADABLE = "the scorer cannot read the pod"


class Mutated:
    """The injection for a pod that the policy applies to. The mutated pod is computed and read on first use.

    `expired` limits the time to read what the scheduler reads from the pod. `release` drops the pod, so that the result
    can be cached; `bind` uses the cached result for an equal pod.
    """

    __slots__ = (
        "_content",
        "_expired",
        "_pod",
        "_qos_class",
        "_signature",
        "_waiting",
        "injection",
        "is_final",
        "like",
    )

    def __init__(self, injection: Injection, content: PodContent, expired: Expired = never) -> None:
        self.injection = injection
        self.is_final = True
        """True if an equal pod has the same signature: the deadline did not stop the reading."""
        self.like: PodSignature | None = None
        """The signature of a pod with the same injection, which differs only in containers and volumes."""
        self._signature: PodSignature | str | None = None
        self._waiting: tuple[bytes, WaitingPod] | None = None
        self._qos_class: QosClass | None = None
        self.bind(content, expired)

    def bind(self, content: PodContent, expired: Expired) -> None:
        """Use this result for the pod in `content`, which equals the previous pod."""
        self._content: PodContent | None = content
        self._pod: JsonObject | None = None
        self._expired = expired

    def release(self) -> None:
        """Drop the pod, and a signature that is not final."""
        self._content = self._pod = self.like = None
        self._expired = never
        if not self.is_final:
            self._signature, self.is_final = None, True

    @property
    def content(self) -> PodContent:
        """Return the pod before its mutation."""
        assert self._content is not None  # noqa: S101 - bound
        return self._content

    @property
    def pod(self) -> JsonObject:
        """Return the mutated pod."""
        if self._pod is None:
            self._pod = patched(self.content.pod, self.injection.operations)
        return self._pod

    @property
    def created(self) -> JsonObject:
        """Return the mutated pod as it will be stored."""
        return as_created(self.pod, self.content.namespace)

    @property
    def qos_class(self) -> QosClass | None:
        """Return the QoS class of the mutated pod, or None if its resources are malformed."""
        if self._qos_class is None:
            self._qos_class = qos_class(self.pod)
        return self._qos_class

    @property
    def signature(self) -> PodSignature | str:
        """Return the fields that the scheduler reads from the mutated pod, or the message of the verdict Unknown."""
        if self._signature is None:
            self._signature = self._read()
        return self._signature

    @property
    def known_signature(self) -> PodSignature | None:
        """Return the signature if it has been read."""
        return self._signature if isinstance(self._signature, PodSignature) else None

    @property
    def waiting(self) -> tuple[bytes, WaitingPod] | None:
        """Return the mutated pod as a waiting pod, with the digest of its fields, or None if they cannot be read."""
        if self._waiting is None and isinstance(signature := self.signature, PodSignature):
            created = self.created
            if content := scheduled_content(created):
                running = running_pod(signature.info, created["metadata"])
                self._waiting = content_digest(content), WaitingPod(signature, running)
        return self._waiting

    @property
    def size_bytes(self) -> int:
        """Return the maximum memory of what is kept of the pod."""
        if not isinstance(self._signature, PodSignature):
            return 0
        return self._signature.size_bytes * (1 if self._waiting is None else 3)

    def _read(self) -> PodSignature | str:
        try:
            size_bytes = _signature_bytes(self.content, self.injection, self.pod)
            return PodSignature.read(deadline_reader(self.created, self._expired), size_bytes, self.like)
        except DeadlineNearError as error:
            self.is_final = isinstance(error, BudgetSpentError)
            return str(error)
        except InvalidInput as error:
            return f"{_UNREADABLE}: {error.errors[0]}"


def _signature_bytes(content: PodContent, injection: Injection, pod: JsonObject) -> int:
    """Return the maximum size of the signature of the mutated `pod` in memory."""
    data = content.data
    if data is not None and len(data) + len(injection.patch) <= MAX_SCORED_BYTES:
        return parsed_bytes(data) + parsed_bytes(injection.patch)
    # Near the limit, count exactly the fields that the scheduler reads.
    view = PodView.of(pod)
    if view is None:
        raise InvalidInput([forbidden("spec", "malformed, or nested deeper than any pod")])
    data = replace(view, metadata=replace(view.metadata, annotations=MISSING)).created()
    if len(data) > MAX_SCORED_BYTES:
        detail = f"more than {MAX_SCORED_BYTES // 1024} KiB, beside environment, commands and mounts"
        raise InvalidInput([forbidden("spec", detail)])
    return parsed_bytes(data)


def as_created(pod: JsonObject, namespace: str) -> JsonObject:
    """Return `pod` as it will be stored: with the namespace of the request, and without status.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, PrepareForCreate
    """
    metadata, pod = pod["metadata"], {**pod, "status": {}} if pod.get("status") else pod
    if metadata.get("namespace") or not namespace:
        return pod
    return {**pod, "metadata": {**metadata, "namespace": namespace}}
