"""The number of pods of an object that must run together, as the object itself states it."""

from webhook.kube.documents import JsonObject
from webhook.kube.object_path import count_at
from webhook.kube.pod_template_path import WorkloadKind


def gang_size(content: JsonObject, kind: WorkloadKind, pods: int) -> int | None:
    """Return the size of the gang of an object with so many `pods`; None if each pod is useful by itself.

    Raises:
        InvalidInput: a field that is read is malformed.
    """
    if kind.gang is None:
        return None
    stated = next((number for path in kind.gang if (number := count_at(content, path, ())) is not None), pods)
    # An object can ask for more pods than it has; it then never starts, which its own controller reports.
    return stated if 1 < stated <= pods else None
