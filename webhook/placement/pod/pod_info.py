"""The part of a pending pod that the plugins read."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.cluster.index.images import normalized_image_name
from webhook.cluster.index.node_selector import Term, WeightedTerm, read_node_affinity
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.kube.names import DEFAULT_NAMESPACE, KAI_SHARES, KUEUE_GATES, KUEUE_QUEUE, VOLCANO_GROUP
from webhook.kube.pod.amounts import Amounts, is_schedulable_resource
from webhook.kube.pod.ports import HostPort, read_host_ports
from webhook.kube.pod.resources import ContainerRequests, read_pod_resources
from webhook.kube.pod.taints import Toleration, Tolerations, with_default_tolerations
from webhook.kube.pod.volumes import NO_VOLUMES, PodReference, PodVolumes, read_volumes
from webhook.kube.reader import Reader
from webhook.kube.release import Change
from webhook.placement.pod.inter_pod_info import InterPodInfo
from webhook.placement.pod.preemption import Nomination, Preemption

_CONTAINERS = ("initContainers", "containers")
_TEXT_OR_NONE = frozenset((str, type(None)))


class PodResourceClaim(NamedTuple):
    """A ResourceClaim that a pod uses, or the ResourceClaimTemplate of a claim that is not created yet.

    `owner` is the pod itself if the claim was created from a template; the claim must belong to it.
    """

    namespace: str
    name: str
    is_template: bool
    owner: PodReference | None = None


class PodInfo(NamedTuple):
    """The part of a pod that its placement depends on; equal parts get equal placements on the same snapshot.

    Amounts are pairs of resource and thousandths of a core for cpu, bytes or units for all else. `requests` must be
    free on the node; they omit zeros. `container_requests` are those without pod-level resources, None if the pod has
    none of these. `scoring_requests` include a default for each container without a request of cpu or memory.
    `by_container` are the requests of the containers with extended resources. `required` is None without required node
    affinity; one without terms matches no node. `images` are those of containers and init containers, `image_volumes`
    those of image volumes; `containers` counts containers and init containers. `stored` identifies the pod if it is
    stored and requests extended resources. `tolerations` include those that the API server adds.
    `has_group`: the pod names a PodGroup of Volcano. `shares_card`: it requests a share of a card of KAI.
    `is_gated`: it has a scheduling gate of another owner than Kueue. `is_held`: it has one of Kueue, which waits for
    quota and says nothing about nodes. `is_queued`: it names a queue of Kueue.
    """

    requests: tuple[tuple[str, int], ...]
    container_requests: tuple[tuple[str, int], ...] | None
    scoring_requests: tuple[tuple[str, int], ...]
    by_container: tuple[ContainerRequests, ...]
    node_name: str
    tolerations: Tolerations
    node_selector: tuple[tuple[str, str], ...]
    required: tuple[Term, ...] | None
    preferred: tuple[WeightedTerm, ...]
    host_ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    image_volumes: tuple[str, ...]
    containers: int
    is_gated: bool
    volumes: PodVolumes
    device_claims: tuple[PodResourceClaim, ...]
    stored: PodReference | None
    inter_pod: InterPodInfo
    preemption: Preemption
    nomination: Nomination
    has_group: bool = False
    shares_card: bool = False
    is_queued: bool = False
    is_held: bool = False

    @classmethod
    def of(cls, reader: Reader, pod: Mapping[str, Any], like: "PodInfo | None" = None) -> "PodInfo":
        """Return the info of `pod`, a raw API object; report malformed fields to `reader`.

        `like` is that of a pod that differs in containers and volumes alone.
        """
        spec = reader.object(pod.get("spec"), "spec")
        resources = read_pod_resources(reader, pod)
        of_containers: dict[str, Any] = {
            "requests": _pairs(resources.requests),
            "container_requests": None if resources.of_containers is None else _pairs(resources.of_containers),
            "scoring_requests": _pairs(resources.scoring_requests),
            "by_container": resources.by_container,
            "host_ports": read_host_ports(reader, spec),
            "images": _images(reader, spec),
            "image_volumes": _image_volumes(reader, spec),
            "containers": sum(len(reader.objects(spec.get(field), f"spec.{field}")) for field in _CONTAINERS),
            "volumes": _volumes(reader, pod, spec),
            "stored": _stored(reader, pod) if resources.by_container else None,
        }
        if like is not None:
            return like._replace(**of_containers)
        affinity = reader.object(spec.get("affinity"), "spec.affinity")
        of_kueue = _gates_of_kueue(reader, spec["schedulingGates"]) if spec.get("schedulingGates") else ()
        node_affinity = read_node_affinity(reader, affinity.get("nodeAffinity"), "spec.affinity.nodeAffinity")
        return cls(
            **of_containers,
            node_name=reader.text(spec.get("nodeName"), "spec.nodeName"),
            tolerations=_tolerations(reader, spec.get("tolerations")),
            node_selector=tuple(reader.text_map(spec.get("nodeSelector"), "spec.nodeSelector").items()),
            required=node_affinity.required,
            preferred=node_affinity.preferred,
            is_gated=not all(of_kueue),
            device_claims=_device_claims(reader, pod, spec),
            inter_pod=InterPodInfo.of(reader, pod),
            preemption=Preemption.of(reader, spec),
            nomination=Nomination.of(reader, pod, spec),
            has_group=bool(field(pod, "metadata", "annotations", VOLCANO_GROUP)),
            shares_card=any(field(pod, "metadata", "annotations", key) for key in KAI_SHARES),
            is_queued=any(of_kueue) or bool(field(pod, "metadata", "labels", KUEUE_QUEUE)),
            is_held=any(of_kueue),
        )

    def normalized_for(self, snapshot: Snapshot) -> "PodInfo":
        """Return the info without the parts that do not matter on `snapshot` or that its release does not have."""
        devices, release = snapshot.devices, snapshot.release
        has_devices = bool(self.by_container) and release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        is_backed = has_devices and devices.back_any(self.requests)
        requests, of_containers = self.requests, self.container_requests
        if of_containers is not None and not release.has(Change.POD_LEVEL_RESOURCES):
            requests, of_containers = of_containers, None
        return self._replace(
            requests=requests,
            container_requests=of_containers,
            by_container=self.by_container if is_backed else (),
            stored=self.stored if is_backed and self.stored in devices.extended_claims else None,
            inter_pod=self.inter_pod.normalized_for(snapshot),
            preemption=self.preemption.normalized_for(snapshot),
            nomination=self.nomination.normalized_for(snapshot),
        )


def has_volumes(pod: PodInfo) -> bool:
    """Return whether `pod` has volumes that nodes can lack, or have in use."""
    return bool(pod.volumes.claims or pod.volumes.disks or pod.volumes.attached_inline)


def _pairs(amounts: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple([(name, amount) for name, amount in amounts.items() if amount and is_schedulable_resource(name)])


def _gates_of_kueue(reader: Reader, gates: Any) -> list[bool]:
    """Return for each of the scheduling `gates` whether Kueue owns it."""
    found = reader.objects(gates, "spec.schedulingGates")
    return [reader.text(each.get("name"), f"{path}.name").startswith(KUEUE_GATES) for path, each in found]


def _images(reader: Reader, spec: Mapping[str, Any]) -> tuple[str, ...]:
    names = [
        reader.text(container.get("image"), f"{path}.image")
        for where in _CONTAINERS
        for path, container in reader.objects(spec.get(where), f"spec.{where}")
    ]
    return tuple([normalized_image_name(name) for name in names if name])


def _image_volumes(reader: Reader, spec: Mapping[str, Any]) -> tuple[str, ...]:
    names = []
    for path, volume in reader.objects(spec.get("volumes"), "spec.volumes"):
        if volume.get("image") is not None:
            image = reader.object(volume["image"], f"{path}.image")
            names.append(reader.text(image.get("reference"), f"{path}.image.reference"))
    return tuple([normalized_image_name(name) for name in names if name])


def _device_claims(reader: Reader, pod: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[PodResourceClaim, ...]:
    if not spec.get("resourceClaims"):
        return ()
    metadata = reader.object(pod.get("metadata"), "metadata")
    namespace = reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE
    generated = _generated_claims(reader, pod)
    found = []
    for path, use in reader.objects(spec.get("resourceClaims"), "spec.resourceClaims"):
        name = reader.text(use.get("resourceClaimName"), f"{path}.resourceClaimName")
        template = reader.text(use.get("resourceClaimTemplateName"), f"{path}.resourceClaimTemplateName")
        own = reader.text(use.get("name"), f"{path}.name")
        if name:
            found.append(PodResourceClaim(namespace, name, is_template=False))
        elif own not in generated:
            found.append(PodResourceClaim(namespace, template, is_template=True))
        elif generated[own]:
            found.append(PodResourceClaim(namespace, generated[own], is_template=False, owner=_reference(reader, pod)))
    return tuple(found)


def _stored(reader: Reader, pod: Mapping[str, Any]) -> PodReference | None:
    """Return a reference to the pod if it is stored; a new pod has no UID."""
    return _reference(reader, pod) if reader.object(pod.get("metadata"), "metadata").get("uid") else None


def _reference(reader: Reader, pod: Mapping[str, Any]) -> PodReference:
    metadata = reader.object(pod.get("metadata"), "metadata")
    return PodReference(
        reader.text(metadata.get("name"), "metadata.name"), reader.text(metadata.get("uid"), "metadata.uid")
    )


def _generated_claims(reader: Reader, pod: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the claims that a controller created from templates, by the pod's names for them; empty: none needed.

    Source: k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go, Name
    """
    status = reader.object(pod.get("status"), "status")
    return {
        reader.text(each.get("name"), f"{path}.name"): reader.text(
            each.get("resourceClaimName"), f"{path}.resourceClaimName"
        )
        for path, each in reader.objects(status.get("resourceClaimStatuses"), "status.resourceClaimStatuses")
    }


def _volumes(reader: Reader, pod: Mapping[str, Any], spec: Mapping[str, Any]) -> PodVolumes:
    if not spec.get("volumes"):
        return NO_VOLUMES
    metadata = reader.object(pod.get("metadata"), "metadata")
    namespace = reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE
    return read_volumes(reader, spec.get("volumes"), namespace, _reference(reader, pod))


def _tolerations(reader: Reader, value: Any) -> Tolerations:
    text = reader.text
    found = []
    for path, toleration in reader.objects(value, "spec.tolerations"):
        if _TEXT_OR_NONE.issuperset(map(type, map(toleration.get, Toleration._fields))):
            found.append(Toleration.of(toleration))
            continue
        operator = text(toleration.get("operator"), f"{path}.operator") or "Equal"
        own_value = text(toleration.get("value"), f"{path}.value")
        found.append(
            Toleration(
                text(toleration.get("key"), f"{path}.key"),
                operator,
                "" if operator == "Exists" else own_value,
                text(toleration.get("effect"), f"{path}.effect"),
            )
        )
    return with_default_tolerations(found)
