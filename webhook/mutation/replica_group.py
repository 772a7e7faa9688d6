"""Find the label that selects the replicas of a pod's owner, which are the pods that are created together."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from webhook.kube.names import is_label_value

# Controllers set these on every pod of an object. The labels of larger objects come first: the pods of a JobSet are
# replicas of each other, though each can have a Job of its own.
OWNER_LABELS = (
    "volcano.sh/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "job-name",
    "pod-template-hash",
)


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """The pods of a namespace with the label `key`=`value`; `is_added` is true if the webhook adds the label."""

    key: str
    value: str
    is_added: bool = False

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def replica_group(pod: Mapping[str, Any], added_key: str, name: str | None = None) -> ReplicaGroup | None:
    """Return the group of `pod`, or None if neither a label nor an owner identifies it.

    If the pod has the label `added_key`, it is used: the user or an earlier admission has set it. Otherwise, with
    `name`, it is used with that value. Otherwise a label that the owner sets is used. Otherwise the label `added_key`
    with the owner as value is used, because no label of a StatefulSet selects its pods of all revisions. All pods of a
    template have the same group.
    """
    metadata = pod["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    if _is_group(chosen := labels.get(added_key)):
        return ReplicaGroup(added_key, chosen or "", is_added=True)
    if name is not None:
        return ReplicaGroup(added_key, name, is_added=True)
    found = next((key for key in OWNER_LABELS if _is_group(labels.get(key))), None)
    if found is not None:
        return ReplicaGroup(found, labels[found])
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller") is True), None)
    return None if owner is None else ReplicaGroup(added_key, _name_of(owner), is_added=True)


def _is_group(value: str | None) -> bool:
    return bool(value) and is_label_value(value or "")


def _name_of(owner: Mapping[str, Any]) -> str:
    """Return kind and name of an owner as a label value, or their hash if they are not a valid label value.

    The UID is not used, because a manifest has none, and its pods must be predicted as they will be created.
    """
    name = f"{owner.get('kind')}.{owner.get('name')}"
    return name if is_label_value(name) else blake2b(name.encode(), digest_size=8).hexdigest()
