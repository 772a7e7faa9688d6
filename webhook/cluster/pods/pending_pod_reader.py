"""Read pending pods fast. Pods of one template have equal content, and most events do not change this content."""

from collections.abc import Mapping
from typing import Any

import orjson

from webhook.cluster.pods.pending_pods import PendingPod, scheduled_content
from webhook.kube.pod.pod_view import PodView
from webhook.runtime.byte_cache import ByteCache

# Those of about a thousand usual templates.
_BUDGET_BYTES = 4 * 1024 * 1024


class PendingPodReader:
    """Reads pods as `PendingPod.of` does. Pods of one template share their content. Not thread-safe."""

    def __init__(self) -> None:
        self._contents: ByteCache[bytes, bytes] = ByteCache(_BUDGET_BYTES)

    def read(self, pod: Mapping[str, Any]) -> PendingPod:
        """Return `PendingPod.of` of `pod`.

        Raises:
            InvalidInput: a field of a nominated pod is malformed; holds every error.
        """
        return PendingPod.of(pod, self._content)

    def _content(self, view: PodView) -> bytes:
        key = view.pending()
        content = self._contents.get(key)
        if content is None:
            content = scheduled_content(orjson.loads(key))
            self._contents.put(key, content, len(key) + len(content))
        return content
