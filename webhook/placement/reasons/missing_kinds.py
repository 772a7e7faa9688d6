"""The kinds without which a plugin cannot be evaluated for a pod."""

from collections.abc import Iterator, Mapping

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, never
from webhook.placement.dra.feasibility import lacks_template
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import DEFAULT_PREEMPTION
from webhook.placement.unmodelled import unmodelled_plugins

_OF_VOLUMES = (VolumeBinding.name, VolumeZone.name, VolumeRestrictions.name, NodeVolumeLimits.name)


def missing_kinds(info: PodInfo, snapshot: Snapshot, expired: Expired = never) -> tuple[str, ...]:
    """Return the plurals of the kinds that plugins lack, or none if a plugin would still lack something with them."""
    needed = [tuple(_lacking(plugin, info, snapshot)) for plugin in unmodelled_plugins(info, snapshot, expired)[0]]
    return tuple(sorted({kind for kinds in needed for kind in kinds})) if all(needed) else ()


def _lacking(plugin: str, info: PodInfo, snapshot: Snapshot) -> Iterator[str]:
    """Yield the kinds that a plugin reads for the pod and that are not in `snapshot`."""
    devices, storage, csi = snapshot.devices, snapshot.storage, snapshot.csi
    kinds: Mapping[str, object] = {}
    if plugin == DynamicResources.name:
        kinds = {
            "deviceclasses": devices.classes,
            "resourceclaims": devices.claims,
            "resourceclaimtemplates": None
            if any(lacks_template(use, devices) for use in info.device_claims)
            else devices,
            "resourceslices": devices.slices,
        }
    elif plugin == DEFAULT_PREEMPTION:
        kinds = {"priorityclasses": None if info.preemption.class_name else snapshot}
    elif plugin in _OF_VOLUMES:
        kinds = {
            "persistentvolumeclaims": storage.claims,
            "persistentvolumes": storage.volumes,
            "storageclasses": storage.classes,
        }
        if None not in kinds.values() and plugin == VolumeBinding.name:
            kinds = {"csidrivers": csi.drivers, "csistoragecapacities": csi.capacities}
        elif None not in kinds.values():
            kinds = {"csinodes": storage.limits}
    yield from (kind for kind, known in kinds.items() if known is None)
