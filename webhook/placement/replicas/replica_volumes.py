"""The volumes that the claims of a placed replica are bound to."""

from dataclasses import replace

from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.volumes import PersistentVolume
from webhook.placement.framework.unbound_claims import chosen_volumes
from webhook.placement.pod.pod_info import PodInfo


def with_chosen_volumes(snapshot: Snapshot, pod: PodInfo, node: str) -> tuple[Snapshot, frozenset[str]]:
    """Return `snapshot` with the claims of `pod` bound as on `node`, and the names of claims to provision.

    Claims that a provisioner serves stay unbound: nothing is known of their volumes yet.
    """
    if not pod.volumes.claims:
        return snapshot, frozenset()
    found = chosen_volumes(pod, snapshot, snapshot.rows[node])
    storage = snapshot.storage
    claims, volumes = dict(storage.claims or {}), dict(storage.volumes or {})
    by_class = dict(storage.volumes_by_class)
    for claim, volume in found.items():
        if volume is None:
            continue
        name = (claim.namespace, claim.name)
        claims[name] = replace(claim, volume_name=volume.name, is_bound=True)
        taken = replace(volume, claim=name, claim_uid=claim.uid, is_available=False)
        volumes[volume.name] = taken
        by_class[volume.storage_class] = tuple(_replaced(each, taken) for each in by_class[volume.storage_class])
    if any(found.values()):
        changed = replace(storage, claims=claims, volumes=volumes, volumes_by_class=by_class)
        snapshot = replace(snapshot, storage=changed)
    return snapshot, frozenset(claim.name for claim, volume in found.items() if volume is None)


def _replaced(volume: PersistentVolume, taken: PersistentVolume) -> PersistentVolume:
    return taken if volume.name == taken.name else volume
