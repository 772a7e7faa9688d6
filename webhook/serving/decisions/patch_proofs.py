"""Proves one patch in a number of them before its answer leaves, whether the decision was cached or not."""

import threading
import time
from binascii import crc32
from collections.abc import Callable

from webhook.admission.patch_proof import UnprovenPatchError, prove_pod_patch
from webhook.admission.pipeline import ClusterView, read_pod
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.independent_patch import TooDeepError
from webhook.objects.template_proof import prove_template_patch
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.decisions.rendering import Rendered

# A proof takes about as long as an admission without a cache. The largest pods of the API server are twelve times as
# large, and could take the processor from others.
MAX_BYTES = 256 * 1024
# Under load, proofs would otherwise take a twentieth of the processor.
_MOST_A_SECOND = 10


class PatchProofs:
    """Proves one of `one_in` answers with a patch; 0: none. Any thread may call it.

    In each run of `one_in` answers, one is proven, at a place that depends on the request: a pattern in the order of
    the pods does not hide a kind of them. At most ten are proven in a second, unless all are.
    """

    def __init__(self, one_in: int, metrics: Metrics, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._one_in = one_in
        self._monotonic_seconds = monotonic_seconds
        self._next_seconds = 0.0
        self._count = metrics.patch_proofs
        self._lock = threading.Lock()
        self._passed = 0
        self._chosen = 0

    def prove(
        self,
        request: AdmissionRequest,
        size_bytes: int,
        policy: Policy,
        cluster: ClusterView | None,
        rendered: Rendered,
    ) -> None:
        """Prove the patch of the answer `rendered` to a review of `size_bytes`, if it is chosen.

        Raises:
            UnprovenPatchError: the patch is wrong.
        """
        if not self._one_in or size_bytes > MAX_BYTES or not rendered.answer.patch or not self._is_chosen(request):
            return
        try:
            _prove(request, policy, cluster, rendered)
        except TooDeepError:
            # Deeper than any pod of a user: the API server rejects it.
            return
        except Exception as error:
            self._count.labels("failed").inc()
            reason = str(error) if isinstance(error, UnprovenPatchError) else repr(error)
            raise UnprovenPatchError(f"{reason} (policy {policy.identity})") from error
        self._count.labels("proven").inc()

    def _is_chosen(self, request: AdmissionRequest) -> bool:
        with self._lock:
            is_chosen = self._passed == self._chosen
            self._passed += 1
            if self._passed >= self._one_in:
                self._passed, self._chosen = 0, crc32(request.uid.encode("utf-8", "replace")) % self._one_in
            if not is_chosen or self._one_in == 1:
                return is_chosen
            now_seconds = self._monotonic_seconds()
            is_due = now_seconds >= self._next_seconds
            if is_due:
                self._next_seconds = now_seconds + 1 / _MOST_A_SECOND
            return is_due


def _prove(request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, rendered: Rendered) -> None:
    operations = rendered.answer.operations()
    if rendered.counted.kind:
        prove_template_patch(request, operations, policy, cluster)
    else:
        prove_pod_patch(read_pod(request, cluster), operations, policy)
