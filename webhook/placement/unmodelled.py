"""The kube-scheduler plugins that are relevant to a pod but are not, or cannot be, evaluated."""

from collections.abc import Collection, Iterator
from typing import Literal

from webhook.cluster.index.pod_term import PodTerm, PodTerms
from webhook.cluster.left_out import (
    ALL_NAMESPACES,
    POD_LABELS,
    POD_PORTS,
    POD_PREFERENCES,
    POD_REPULSION,
    POD_VOLUMES,
    LeftOut,
)
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage.storage import Storage
from webhook.cluster.storage.volumes import PersistentVolume, PersistentVolumeClaim
from webhook.kube.deadline import Expired, never
from webhook.kube.names import is_dns_subdomain
from webhook.kube.pod.amounts import is_extended_resource
from webhook.kube.pod.volumes import MIGRATIONS, PodVolumes
from webhook.kube.release import Change
from webhook.placement.dra.feasibility import device_feasibility, resource_claim
from webhook.placement.framework.storage_scores import is_capacity_ambiguous
from webhook.placement.framework.volume_claims import attached_volumes, claims_of
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits, needed_drivers
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.pod.inter_pod_info import InterPodInfo
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import DEFAULT_PREEMPTION, NODE_DECLARED_FEATURES

_Effect = Literal["filters", "scores"]
_PLUGINS_OF_INLINE_DISKS = (VolumeRestrictions.name, NodeVolumeLimits.name)
_CLAIM_PLUGINS = (*_PLUGINS_OF_INLINE_DISKS, VolumeBinding.name, VolumeZone.name)


def unmodelled_plugins(
    info: PodInfo, snapshot: Snapshot, expired: Expired = never
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plugins that may exclude nodes of `snapshot` for the pod, `info`, and those that only score.

    Default topology spread constraints are unknown if the pod's controller or the Services are not known.
    """
    inter_pod = info.inter_pod
    preferred = set()
    lacks_workloads = snapshot.workloads.lacks(inter_pod.namespace, inter_pod.owner)
    if not inter_pod.spread and (lacks_workloads or ("Service", inter_pod.namespace) in snapshot.left_out.names):
        preferred.add(PodTopologySpread.name)
    lacks_limits = info.volumes.claims and snapshot.storage.limits is None
    if lacks_limits or _lacks_attachments(info.volumes, snapshot):
        # A node without a CSINode has no limits, and possibly no node has a CSINode. A volume that is attached without
        # a running pod is being detached, or its pod is starting.
        preferred.add(NodeVolumeLimits.name)
    required = set(_volume_plugins(info.volumes, snapshot))
    scores_storage = info.volumes.claims and snapshot.release.has(Change.STORAGE_CAPACITY_SCORES)
    if scores_storage and is_capacity_ambiguous(claims_of(info, snapshot.storage), snapshot, expired):
        preferred.add(VolumeBinding.name)
    if snapshot.left_out.names:
        required |= {*_plugins_of_running_pods(info, snapshot.left_out)}
        if snapshot.left_out.has_any(POD_REPULSION) or snapshot.left_out.has_any(POD_PREFERENCES):
            preferred.add(InterPodAffinity.name)
    if info.preemption.class_name and snapshot.nominated:
        # The pod's priority decides which nominated pods count.
        required.add(DEFAULT_PREEMPTION)
    if effects := _namespace_effects(inter_pod, snapshot):
        (required if "filters" in effects else preferred).add(InterPodAffinity.name)
    if (info.device_claims or info.by_container) and not _are_devices_decided(info, snapshot, expired):
        required.add(DynamicResources.name)
    if info.needs_declared_features and snapshot.release.has(Change.NODE_DECLARED_FEATURES):
        required.add(NODE_DECLARED_FEATURES)
    return frozenset(required), frozenset(preferred - required)


def _are_devices_decided(info: PodInfo, snapshot: Snapshot, expired: Expired) -> bool:
    """Return whether it is known which nodes have the devices that the pod requests."""
    if not snapshot.release.has(Change.ALLOCATED_CLAIMS_SCORE):
        claims = [resource_claim(use, snapshot.devices) for use in info.device_claims]
        if len({claim.allocation is None for claim in claims if claim is not None}) > 1:
            return False
    return device_feasibility(info, snapshot, expired).is_decided


def unknown_resources(info: PodInfo, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the requested resources that no node offers but that an unknown DeviceClass may back.

    Other unmodelled or unknown objects can only exclude nodes. An unknown DeviceClass can make nodes feasible, because
    kube-scheduler then looks for devices in ResourceSlices. If the DeviceClasses are known, no resource is unknown.
    """
    if snapshot.devices.classes is not None or not snapshot.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES):
        return ()
    extended = [resource for resource, _ in info.requests if is_extended_resource(resource)]
    return tuple([resource for resource in extended if not snapshot.allocatable(resource).any()])


def _namespace_effects(inter_pod: InterPodInfo, snapshot: Snapshot) -> set[_Effect]:
    """Return the effects of the pod affinity terms that select namespaces by labels that are not known.

    The namespace of the pod itself exists, because the API server rejects a pod in a missing namespace.
    """
    is_known = inter_pod.namespace in snapshot.namespaces or not inter_pod.namespace
    effects = set(_effects_with_namespace_selector(inter_pod.terms))
    if effects and is_known and not _has_pods_in_unknown_namespaces(snapshot):
        effects.clear()
    if not is_known and snapshot.pods.has_terms:
        carried = snapshot.pods.classes.carried_by_namespace_labels(dict(inter_pod.labels))
        running = [each for each in carried if len(snapshot.pods.carrier_rows(each)[0])]
        effects |= {"filters" if each.kind == "anti_required" else "scores" for each in running}
    return effects


def _has_pods_in_unknown_namespaces(snapshot: Snapshot) -> bool:
    # The table can have classes of pods that are gone, such as those of a namespace that was deleted.
    unknown = snapshot.pods.classes.namespaces - snapshot.namespaces.keys()
    return bool(unknown) and len(snapshot.pods.rows_selected(unknown, ())) > 0


def _effects_with_namespace_selector(terms: PodTerms) -> Iterator[_Effect]:
    if any(term.chooses_namespaces for term in (*terms.required, *terms.anti_required)):
        yield "filters"
    if any(weighted.term.chooses_namespaces for weighted in terms.preferred):
        yield "scores"


def _plugins_of_running_pods(info: PodInfo, left_out: LeftOut) -> Iterator[str]:
    """Yield the plugins that would compare the pod with a part of a running pod that is left out."""
    inter_pod, names = info.inter_pod, left_out.names
    required = (*inter_pod.terms.required, *inter_pod.terms.anti_required)
    is_repelled = any((POD_REPULSION, each) in names for each in (ALL_NAMESPACES, inter_pod.namespace))
    if is_repelled or any(_may_lack_labels(term, names) for term in required):
        yield InterPodAffinity.name
    if inter_pod.spread and (POD_LABELS, inter_pod.namespace) in names:
        yield PodTopologySpread.name
    if info.host_ports and left_out.has_any(POD_PORTS):
        yield NodePorts.name
    if info.volumes.claims and left_out.has_any(POD_VOLUMES):
        yield from _PLUGINS_OF_INLINE_DISKS


def _may_lack_labels(term: PodTerm, names: Collection[tuple[str, str]]) -> bool:
    if term.namespace_selector is not None:
        return any(part == POD_LABELS for part, _ in names)
    return any((POD_LABELS, namespace) in names for namespace in term.namespaces)


def _volume_plugins(volumes: PodVolumes, snapshot: Snapshot) -> Iterator[str]:
    """Yield the plugins that need objects for the pod's volumes that `snapshot` lacks."""
    storage = snapshot.storage
    if volumes.inline_disks:
        yield from _PLUGINS_OF_INLINE_DISKS
    if storage.limits is None and needed_drivers(volumes, snapshot):
        yield NodeVolumeLimits.name
    for use in volumes.claims:
        claim = None if storage.claims is None else storage.claims.get((volumes.namespace, use.name))
        if snapshot.left_out.has("PersistentVolumeClaim", volumes.namespace, use.name):
            yield from _CLAIM_PLUGINS
        elif claim is not None:
            yield from _claim_plugins(claim, snapshot)
        elif storage.claims is None or use.is_ephemeral:
            yield from _CLAIM_PLUGINS


def _claim_plugins(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Iterator[str]:
    storage = snapshot.storage
    plugins = (VolumeBinding.name, VolumeZone.name, NodeVolumeLimits.name)
    if claim.volume_name:
        volume = None if storage.volumes is None else storage.volumes.get(claim.volume_name)
        if storage.volumes is None:
            yield from plugins
        elif volume is None:
            yield from (NodeVolumeLimits.name,) if claim.storage_class and storage.classes is None else ()
        elif claim.is_bound and _may_be_translated(volume, storage):
            yield VolumeBinding.name
    elif claim.storage_class and storage.classes is None:
        yield from plugins
    elif claim.storage_class and (storage.volumes is None or _may_lack_capacity(claim, snapshot)):
        yield VolumeBinding.name


def _may_be_translated(volume: PersistentVolume, storage: Storage) -> bool:
    """Return whether some nodes may migrate the volume to a CSI driver and this is not known."""
    if volume.migrated is None:
        return False
    if storage.limits is None:
        return not volume.migrated.handle or volume.translated != volume.required
    plugin = MIGRATIONS[volume.source].plugin
    return not volume.migrated.handle and any(plugin in each.migrated_plugins for each in storage.limits.values())


def _may_lack_capacity(claim: PersistentVolumeClaim, snapshot: Snapshot) -> bool:
    """Return whether a driver that tracks capacity may provision the claim and the capacity is not known.

    A provisioner whose name is not valid for a CSIDriver reports no capacity.
    """
    storage_class = (snapshot.storage.classes or {}).get(claim.storage_class)
    if storage_class is None or not storage_class.waits_for_consumer:
        return False
    if not is_dns_subdomain(storage_class.provisioner.lower()):
        return False
    csi = snapshot.csi
    if csi.drivers is None:
        return True
    driver = csi.drivers.get(storage_class.provisioner)
    return driver is not None and driver.tracks_capacity and csi.capacities is None


def _lacks_attachments(volumes: PodVolumes, snapshot: Snapshot) -> bool:
    """Return whether a node limits a driver that the pod uses, and its VolumeAttachments are not known."""
    limits = snapshot.storage.limits
    if snapshot.csi.attachments is not None or not limits:
        return False
    drivers = {volume.driver for volume in attached_volumes(volumes, snapshot.storage)}
    return bool(drivers) and any(drivers & each.by_driver.keys() for each in limits.values())
