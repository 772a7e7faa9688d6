"""The edit of requests and limits; `webhook.mutation.edits` describes the laws that edits obey."""

from dataclasses import dataclass
from typing import Any

from webhook.mutation.editor import Path, PodEditor
from webhook.mutation.edits import CHANGED, KEPT, Effect


@dataclass(frozen=True, slots=True)
class SetAmount:
    """Set the request or limit at `path` to `value`, unless there is one."""

    path: Path
    value: Any

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"set {place[1:]}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the amount if it is missing."""
        if pod.get(*self.path) is not None:
            return KEPT
        pod.set(self.value, *self.path)
        return CHANGED
