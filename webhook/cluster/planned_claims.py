"""The claims that a controller will create with its pods."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.pvc import PersistentVolumeClaim
from webhook.cluster.storage.storage import Storage

# The class of a claim that names none, while the classes of the cluster are not known.
_UNKNOWN_DEFAULT = "(the default StorageClass)"


def with_planned_claims(snapshot: Snapshot, claims: Iterable[dict[str, Any]]) -> Snapshot:
    """Return `snapshot` with `claims`, raw PersistentVolumeClaims that do not exist yet; existing ones stay.

    A claim without a class has the default class, as the API server sets it. If the claims of the cluster are not
    known, the snapshot does not change: the pods' placement stays Unknown.

    Raises:
        InvalidInput: a field of a claim that is read is malformed; holds every error.
    """
    storage = snapshot.storage
    if storage.claims is None:
        return snapshot
    planned = {}
    for claim in claims:
        facts = PersistentVolumeClaim.of(claim)
        if not _names_class(claim):
            facts = replace(facts, storage_class=_default_class(storage))
        planned[facts.namespace, facts.name] = facts
    if not planned:
        return snapshot
    return replace(snapshot, storage=replace(storage, claims={**planned, **storage.claims}))


def _names_class(claim: dict[str, Any]) -> bool:
    """Return true if the claim names a class; an empty name asks for a volume without one."""
    spec, annotations = claim.get("spec") or {}, (claim.get("metadata") or {}).get("annotations") or {}
    return spec.get("storageClassName") is not None or "volume.beta.kubernetes.io/storage-class" in annotations


def _default_class(storage: Storage) -> str:
    """Return the newest default class; empty if there is none.

    Source: k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault, GetDefaultClass
    """
    if storage.classes is None:
        return _UNKNOWN_DEFAULT
    defaults = [each for each in storage.classes.values() if each.is_default]
    newest = max((each.created for each in defaults), default="")
    return min((each.name for each in defaults if each.created == newest), default="")
