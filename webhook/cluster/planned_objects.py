"""Objects that do not exist yet: claims that a controller creates with its pods, and objects in files with pods."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from webhook.cluster.objects.limit_range import LimitRange
from webhook.cluster.objects.priority_class import PRIORITY_CLASS_KIND, PriorityClass
from webhook.cluster.objects.runtime_class import RuntimeClass
from webhook.cluster.optional_kinds import (
    LIMIT_RANGE_KIND,
    OPTIONAL_KINDS,
    RUNTIME_CLASS_KIND,
    optional_kind_named,
)
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.storage import Storage
from webhook.cluster.storage.volumes import PersistentVolumeClaim
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.names import DEFAULT_NAMESPACE

_CLAIM = "PersistentVolumeClaim"
# Their facts by the field of the Devices that has them.
_TEMPLATE = "ResourceClaimTemplate"
_DEVICE_KINDS = {"ResourceClaim": "claims", _TEMPLATE: "templates"}
# The class of a claim that names none, while the classes of the cluster are not known.
_UNKNOWN_DEFAULT = "(the default StorageClass)"


def with_planned_claims(snapshot: Snapshot, claims: Iterable[dict[str, Any]]) -> Snapshot:
    """Return `snapshot` with `claims`, raw PersistentVolumeClaims that do not exist yet. Existing claims are kept.

    A claim without a class gets the default class, as in the API server. If the claims of the cluster are not known,
    the snapshot is returned unchanged, so that the placement of the pods stays Unknown.

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


def is_planned(content: Mapping[str, Any]) -> bool:
    """Return whether `with_planned_objects` reads objects of this kind."""
    kind = optional_kind_named(str(content.get("apiVersion")), str(content.get("kind")))
    return kind in (_CLAIM, PRIORITY_CLASS_KIND, RUNTIME_CLASS_KIND, LIMIT_RANGE_KIND, *_DEVICE_KINDS)


def with_planned_objects(snapshot: Snapshot, documents: Iterable[Document]) -> Snapshot:
    """Return `snapshot` with the claims, classes and LimitRanges in `documents` added. Existing objects are kept.

    Claims of a kind that is not known in the cluster are left out, so that the placement of the pods stays Unknown.

    Raises:
        InvalidInput: an object is malformed; the errors name its document.
    """
    found: dict[str, list[Document]] = {}
    for each in documents:
        if is_planned(each.content):
            found.setdefault(str(each.content["kind"]), []).append(each)
    for kind, planned in found.items():
        for each in planned:
            try:
                snapshot = _with_object(snapshot, kind, each.content)
            except InvalidInput as error:
                raise InvalidInput(fault.prefixed(each.place) for fault in error.errors) from error
    return snapshot


def _with_object(snapshot: Snapshot, kind: str, content: dict[str, Any]) -> Snapshot:
    if kind == _CLAIM:
        return with_planned_claims(snapshot, (content,))
    if kind == PRIORITY_CLASS_KIND:
        facts = PriorityClass.of(content)._replace(is_planned=True)
        return replace(snapshot, priority_classes={facts.name: facts, **snapshot.priority_classes})
    if kind == RUNTIME_CLASS_KIND:
        classes, runtime_class = snapshot.runtime_classes, RuntimeClass.of(content)
        by_name = {runtime_class.name: runtime_class, **classes.by_name}
        return replace(snapshot, runtime_classes=classes._replace(by_name=by_name))
    if kind == LIMIT_RANGE_KIND:
        return _with_limit_range(snapshot, LimitRange.of(content))
    devices, name = snapshot.devices, _DEVICE_KINDS[kind]
    if kind == _TEMPLATE and devices.templates is None:
        # The pods beside it use it, whatever other templates there are.
        name = "planned_templates"
    known = getattr(devices, name)
    if known is None:
        return snapshot
    claim: Any = OPTIONAL_KINDS[kind].read(content)
    planned: Any = {name: {(claim.namespace, claim.name): claim, **known}}
    return replace(snapshot, devices=replace(devices, answers={}, **planned))


def _with_limit_range(snapshot: Snapshot, planned: LimitRange) -> Snapshot:
    namespace = planned.namespace or DEFAULT_NAMESPACE
    known = snapshot.limit_ranges.get(namespace, ())
    if any(each.name == planned.name for each in known):
        return snapshot
    return replace(snapshot, limit_ranges={**snapshot.limit_ranges, namespace: (*known, planned)})


def _names_class(claim: dict[str, Any]) -> bool:
    """Return true if the claim names a class. An empty name counts: it requests a volume without a class."""
    spec, annotations = claim.get("spec") or {}, (claim.get("metadata") or {}).get("annotations") or {}
    return spec.get("storageClassName") is not None or "volume.beta.kubernetes.io/storage-class" in annotations


def _default_class(storage: Storage) -> str:
    """Return the newest default class, or an empty string if there is none.

    Source: k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault, GetDefaultClass
    """
    if storage.classes is None:
        return _UNKNOWN_DEFAULT
    defaults = [each for each in storage.classes.values() if each.is_default]
    newest = max((each.created for each in defaults), default="")
    return min((each.name for each in defaults if each.created == newest), default="")
