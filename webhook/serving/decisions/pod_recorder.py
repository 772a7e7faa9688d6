"""Record the pods of admissions in `FILE.pods`, so that a replay can decide on them again (`serve --audit-pods`)."""

from hashlib import blake2b

import orjson

from webhook.admission.cluster_view import ClusterView
from webhook.admission.missed import Scope
from webhook.admission.pipeline import not_a_pod_creation
from webhook.admission.recorded_pod import RecordedPod, kept_domains
from webhook.audit.pods import PodFile
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.policy.policy import Policy

SHARE_BYTES = 4 * 1024 * 1024
"""The most bytes of a namespace in ten minutes, so that no user can push the pods of others out of the file."""

_MOST_KNOWN = 16 * 1024
_MOST_NAMESPACES = 4096
# The part of an RFC 3339 time up to the tens of minutes.
_WINDOW = len("2026-01-31T12:0")


class PodRecorder:
    """Writes the pods of requests to `file`, and returns their digests. Not thread-safe."""

    def __init__(self, file: PodFile) -> None:
        self._file = file
        self._era = file.era
        self._digests: dict[bytes, str] = {}
        self._added_bytes: dict[str, int] = {}
        self._window = ""

    def digest_of(self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, time: str) -> str:
        """Record the pod at `time` (RFC 3339) and return its digest, or "" if not, as in a dry run."""
        if request.dry_run or not_a_pod_creation(request):
            return ""
        namespace = request.namespace or DEFAULT_NAMESPACE
        known = cluster.snapshot.namespaces.get(namespace) if cluster is not None else None
        scope = None if known is None else Scope(known.annotations, known.labels)
        key = _key(request, policy, scope)
        if self._era != self._file.era or len(self._digests) >= _MOST_KNOWN:
            self._digests.clear()
            self._era = self._file.era
        digest = self._digests.get(key) if key else None
        if digest is None:
            digest = self._put(request, namespace, policy, scope, time)
            if digest and key:
                self._digests[key] = digest
        return digest

    def _put(self, request: AdmissionRequest, namespace: str, policy: Policy, scope: Scope | None, time: str) -> str:
        if time[:_WINDOW] != self._window or len(self._added_bytes) >= _MOST_NAMESPACES:
            self._window = time[:_WINDOW]
            self._added_bytes.clear()
        added_bytes = self._added_bytes.get(namespace, 0)
        if added_bytes > SHARE_BYTES:
            return ""
        try:
            domains = kept_domains(policy.spec)
            content = RecordedPod.of(request.object or {}, scope, request.groups, domains).serialised()
        except ValueError:
            return ""
        self._added_bytes[namespace] = added_bytes + len(content)
        return self._file.put(content)


def _key(request: AdmissionRequest, policy: Policy, scope: Scope | None) -> bytes:
    """Return a key that is equal only for requests with equal digests. It is empty if this requires reading the pod."""
    if request.template is None:
        return b""
    of_namespace = () if scope is None else (dict(scope.annotations), dict(scope.labels))
    others = orjson.dumps([request.groups, policy.spec.key_domain, policy.spec.former_key_domains, of_namespace])
    return blake2b(request.template + others, digest_size=16).digest()
