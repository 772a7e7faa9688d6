"""What a pod asks of kube-scheduler that no plugin here models, by the names of kube-scheduler's plugins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cluster.node_info import normalized_image_name
from webhook.cluster.snapshot import Snapshot
from webhook.kube.reader import Reader
from webhook.kube.resource_names import is_allocated_by_claim
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.placement.pod_info import PodInfo

SCHEDULING_GATES = "SchedulingGates"
VOLUME_RESTRICTIONS = "VolumeRestrictions"
NODE_VOLUME_LIMITS = "NodeVolumeLimits"
VOLUME_BINDING = "VolumeBinding"
VOLUME_ZONE = "VolumeZone"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"
DYNAMIC_RESOURCES = "DynamicResources"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
IMAGE_LOCALITY = "ImageLocality"

_CLAIM_PLUGINS = (VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS, VOLUME_BINDING, VOLUME_ZONE)
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")
_AFFINITIES = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# The owners whose pods kube-scheduler spreads over hosts and zones by default.
_SPREAD_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")


@dataclass(frozen=True, slots=True)
class Demands:
    """What a pod holds that the plugins here do not read.

    `required`: plugins that may bar the pod from nodes; `preferred`: those that only change the scores. The rest
    tells whether running pods and the images of nodes concern it.
    """

    required: frozenset[str]
    preferred: frozenset[str]
    namespace: str
    labels: tuple[tuple[str, str], ...]
    images: tuple[str, ...]

    @classmethod
    def of(cls, reader: Reader, pod: Mapping[str, Any], info: PodInfo) -> "Demands":
        """The demands of `pod`, whose other part is `info`; what is malformed is noted with `reader`."""
        metadata = reader.object(pod.get("metadata"), "metadata")
        spec = reader.object(pod.get("spec"), "spec")
        required = set(_required(reader, spec))
        preferred = set()
        affinity = _pod_affinity(reader, spec.get("affinity"))
        if _REQUIRED in affinity:
            required.add(INTER_POD_AFFINITY)
        if _PREFERRED in affinity:
            preferred.add(INTER_POD_AFFINITY)
        spread = _spread(reader, spec, metadata)
        if "DoNotSchedule" in spread:
            required.add(POD_TOPOLOGY_SPREAD)
        if "ScheduleAnyway" in spread:
            preferred.add(POD_TOPOLOGY_SPREAD)
        if any(is_allocated_by_claim(resource) for resource, _ in info.requests):
            required.add(DYNAMIC_RESOURCES)
        return cls(
            required=frozenset(required),
            preferred=frozenset(preferred),
            namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE,
            labels=tuple(reader.text_map(metadata.get("labels"), "metadata.labels").items()),
            images=_images(reader, spec),
        )

    def within(self, snapshot: Snapshot) -> "Demands":
        """The same, less what makes no difference on `snapshot`."""
        namespace, labels = (self.namespace, self.labels) if snapshot.terms else ("", ())
        images = () if snapshot.images.isdisjoint(self.images) else self.images
        return Demands(self.required, self.preferred, namespace, labels, images)

    def on(self, snapshot: Snapshot) -> tuple[frozenset[str], frozenset[str]]:
        """The plugins that may bar the pod from nodes of `snapshot`, and those that may change its scores there."""
        labels, namespace_labels = dict(self.labels), snapshot.namespace_labels(self.namespace)
        concerning = {
            term.is_required_anti_affinity
            for term in snapshot.terms
            if term.matches(self.namespace, namespace_labels, labels)
        }
        required = self.required | ({INTER_POD_AFFINITY} if True in concerning else set())
        preferred = self.preferred | ({INTER_POD_AFFINITY} if False in concerning else set())
        if not snapshot.images.isdisjoint(self.images):
            preferred |= {IMAGE_LOCALITY}
        return required, preferred


def _required(reader: Reader, spec: Mapping[str, Any]) -> Iterator[str]:
    if reader.objects(spec.get("schedulingGates"), "spec.schedulingGates"):
        yield SCHEDULING_GATES
    for _, volume in reader.objects(spec.get("volumes"), "spec.volumes"):
        if volume.get("persistentVolumeClaim") is not None or volume.get("ephemeral") is not None:
            yield from _CLAIM_PLUGINS
        elif any(volume.get(disk) is not None for disk in _DISKS):
            yield from (VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS)
    if reader.objects(spec.get("resourceClaims"), "spec.resourceClaims"):
        yield DYNAMIC_RESOURCES
    if (spec.get("hostNetwork") is True and spec.get("hostUsers") is False) or _restarts_all_containers(reader, spec):
        yield NODE_DECLARED_FEATURES


def _restarts_all_containers(reader: Reader, spec: Mapping[str, Any]) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for path, container in _containers(reader, spec)
        for _, rule in reader.objects(container.get("restartPolicyRules"), f"{path}.restartPolicyRules")
    )


def _pod_affinity(reader: Reader, value: Any) -> set[str]:
    """Which of required and preferred terms the pod has in its podAffinity and podAntiAffinity."""
    if value is None:
        return set()
    affinity = reader.object(value, "spec.affinity")
    found = set()
    for kind in _AFFINITIES:
        part = reader.object(affinity.get(kind), f"spec.affinity.{kind}")
        found |= {
            field
            for field in (_REQUIRED, _PREFERRED)
            if reader.objects(part.get(field), f"spec.affinity.{kind}.{field}")
        }
    return found


def _spread(reader: Reader, spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What to do where each spread constraint cannot be met; a workload's pods without any have default ones."""
    constraints = reader.objects(spec.get("topologySpreadConstraints"), "spec.topologySpreadConstraints")
    if constraints:
        return tuple(
            reader.text(constraint.get("whenUnsatisfiable"), f"{path}.whenUnsatisfiable")
            for path, constraint in constraints
        )
    owners = reader.objects(metadata.get("ownerReferences"), "metadata.ownerReferences")
    is_default = any(owner.get("controller") is True and owner.get("kind") in _SPREAD_OWNERS for _, owner in owners)
    return ("ScheduleAnyway",) if is_default else ()


def _images(reader: Reader, spec: Mapping[str, Any]) -> tuple[str, ...]:
    names = [reader.text(container.get("image"), f"{path}.image") for path, container in _containers(reader, spec)]
    return tuple([normalized_image_name(name) for name in names if name])


def _containers(reader: Reader, spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        *reader.objects(spec.get("initContainers"), "spec.initContainers"),
        *reader.objects(spec.get("containers"), "spec.containers"),
    ]
