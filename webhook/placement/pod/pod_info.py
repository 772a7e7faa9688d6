"""The part of a pending pod that the plugins read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from webhook.cluster.batch.network_topology import NetworkTopology
from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.index.images import normalized_image_name
from webhook.cluster.index.node_selector import Term, WeightedTerm, read_node_affinity
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.kube.names import (
    DEFAULT_NAMESPACE,
    KAI_SHARES,
    KUEUE_GATES,
    KUEUE_QUEUE,
    LIMIT_RANGER,
    REQUIRED_TOPOLOGIES,
    VOLCANO_GROUP,
    VOLCANO_TIER,
    VOLCANO_TOPOLOGY,
)
from webhook.kube.pod.amounts import Amounts, is_schedulable_resource, read_milli, whole_units
from webhook.kube.pod.card_names import may_be_share
from webhook.kube.pod.ports import HostPort, read_host_ports
from webhook.kube.pod.resources import ContainerRequests, PodResources, read_pod_resources
from webhook.kube.pod.taints import Toleration, with_default_tolerations
from webhook.kube.pod.volumes import NO_VOLUMES, PodReference, PodVolumes, read_volumes
from webhook.kube.reader import Reader
from webhook.kube.release import Change
from webhook.placement.pod.inter_pod_info import InterPodInfo
from webhook.placement.pod.network_limit import network_limit
from webhook.placement.pod.preemption import Nomination, Preemption

_CONTAINERS = ("initContainers", "containers")
_TEXT_OR_NONE = frozenset((str, type(None)))


class PodResourceClaim(NamedTuple):
    """A ResourceClaim of a pod, or a template that is not created yet. `owner` is the pod that it must belong to."""

    namespace: str
    name: str
    is_template: bool
    owner: PodReference | None = None


class PodInfo(NamedTuple):
    """The part of a pod that its placement depends on. Equal parts get equal placements on the same snapshot.

    Amounts are (resource, amount), in thousandths of a core for cpu, and in bytes or units for other resources.
    `requests` must be free on the node; they omit zeros and include the `overhead`. `container_requests` are the
    requests without pod-level resources, or None if the pod has no pod-level resources. `scoring_requests` include a
    default for each container without a request of cpu or memory. `by_container` are the requests of the containers
    with extended resources. `required` is None without required node affinity; without terms, it matches no node.
    `images` are the images of containers and init containers, and `image_volumes` those of image volumes; `containers`
    counts containers and init containers. `stored` identifies the pod if it is stored and requests extended resources.
    `tolerations` include those that the API server adds. `has_group` is true if the pod names a PodGroup of Volcano.
    `shares_card` is true if it requests a share of a card of KAI. `gates` is the number of its scheduling gates, or 0
    if all belong to Kueue. `is_held` is true if it has a gate of Kueue, which waits for quota and not for nodes.
    `is_queued` is true if it names a queue of Kueue. `needs_declared_features` is true if some nodes may lack declared
    features that it needs. `shares` are the requested shares of cards that a scheduler extender counts if no node
    offers them. `topologies` are the annotations by which a queue keeps a group of pods within a domain, and `network`
    is what those of Volcano require, or None if they require nothing. `summed` are the resources that several
    containers request, so that the sum exceeds every single request. `defaulted` are the resources whose request
    LimitRanger has set. `domain` are the labels of the domain in which a gang is placed: the pod only fits there, and
    its topology spread constraints count all nodes.
    """

    requests: tuple[tuple[str, int], ...]
    container_requests: tuple[tuple[str, int], ...] | None
    scoring_requests: tuple[tuple[str, int], ...]
    by_container: tuple[ContainerRequests, ...]
    node_name: str
    tolerations: frozenset[Toleration]
    node_selector: tuple[tuple[str, str], ...]
    required: tuple[Term, ...] | None
    preferred: tuple[WeightedTerm, ...]
    host_ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    image_volumes: tuple[str, ...]
    containers: int
    gates: int
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
    needs_declared_features: bool = False
    shares: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ()
    network: NetworkTopology | None = None
    overhead: tuple[tuple[str, int], ...] = ()
    runtime_class: str = ""
    summed: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    domain: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of(cls, pod: Reader, like: "PodInfo | None" = None) -> "PodInfo":
        """Return the info of `pod`. `like` is the info of a pod that differs only in containers and volumes."""
        metadata, spec = pod.object("metadata"), pod.object("spec")
        resources = read_pod_resources(pod)
        containers = [each for key in _CONTAINERS for each in spec.objects(key)]
        annotations = metadata.raw.get("annotations")
        note = annotations.get(LIMIT_RANGER) if isinstance(annotations, dict) else None
        of_containers: dict[str, Any] = {
            "requests": _pairs(resources.requests),
            "container_requests": None if resources.of_containers is None else _pairs(resources.of_containers),
            "scoring_requests": _pairs(resources.scoring_requests),
            "by_container": resources.by_container,
            "host_ports": read_host_ports(spec),
            "images": _images(containers),
            "image_volumes": _image_volumes(spec),
            "containers": len(containers),
            "volumes": _volumes(metadata, spec),
            "shares": tuple(filter(may_be_share, resources.requests)) if resources.by_container else (),
            "summed": resources.summed,
            "defaulted": _defaulted(str(note), resources) if note else (),
            # A new pod has no UID.
            "stored": _reference(metadata) if resources.by_container and metadata.raw.get("uid") else None,
        }
        if like is not None:
            return like._replace(**of_containers, needs_declared_features=_needs_declared_features(spec, containers))
        of_kueue = _gates_of_kueue(spec) if spec.raw.get("schedulingGates") else ()
        node_affinity = read_node_affinity(spec.object("affinity"), "nodeAffinity")
        topologies, network = _topologies(metadata)
        return cls(
            **of_containers,
            node_name=spec.text("nodeName"),
            tolerations=_tolerations(spec),
            node_selector=tuple(spec.text_map("nodeSelector").items()),
            required=node_affinity.required,
            preferred=node_affinity.preferred,
            gates=0 if all(of_kueue) else len(of_kueue),
            device_claims=_device_claims(pod, metadata, spec) if spec.raw.get("resourceClaims") else (),
            inter_pod=InterPodInfo.of(metadata, spec),
            preemption=Preemption.of(spec),
            nomination=Nomination.of(pod, metadata, spec),
            has_group=bool(field(metadata.raw, "annotations", VOLCANO_GROUP)),
            shares_card=any(field(metadata.raw, "annotations", key) for key in KAI_SHARES),
            topologies=topologies,
            network=network,
            is_queued=any(of_kueue) or bool(field(metadata.raw, "labels", KUEUE_QUEUE)),
            is_held=any(of_kueue),
            needs_declared_features=_needs_declared_features(spec, containers),
            overhead=_pairs(whole_units(read_milli(spec, "overhead"))) if spec.raw.get("overhead") else (),
            runtime_class=spec.text("runtimeClassName") if "runtimeClassName" in spec.raw else "",
        )

    def native_group(self, snapshot: Snapshot) -> PodGroup | None:
        """Return the PodGroup of kube-scheduler that has this not normalized pod, or None if not known."""
        return (snapshot.pod_groups.native or {}).get((self.inter_pod.namespace, self.preemption.group))

    def network_on(self, snapshot: Snapshot) -> NetworkTopology | None:
        """Return the request of a domain of Volcano, or None if there is none or Volcano ignores it on `snapshot`."""
        is_read = self.network is not None and not network_limit(self.network, snapshot).ignored
        return self.network if is_read else None

    def normalized_for(self, snapshot: Snapshot) -> "PodInfo":
        """Return the info without the parts that do not matter on `snapshot` or that its release does not support."""
        devices, release = snapshot.devices, snapshot.release
        has_devices = bool(self.by_container) and release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        is_backed = has_devices and devices.back_any(self.requests)
        requests, of_containers = self.requests, self.container_requests
        shares = self.shares
        if shares:
            shares = tuple([name for name in shares if not snapshot.allocatable(name).any() and not devices.back(name)])
            requests = tuple([each for each in requests if each[0] not in shares])
            of_containers = of_containers and tuple([each for each in of_containers if each[0] not in shares])
        return self._replace(
            requests=requests,
            shares=shares,
            container_requests=of_containers,
            by_container=self.by_container if is_backed else (),
            stored=self.stored if is_backed and self.stored in devices.extended_claims else None,
            inter_pod=self.inter_pod.normalized_for(snapshot),
            preemption=self.preemption.normalized_for(snapshot),
            nomination=self.nomination.normalized_for(snapshot),
            network=self.network and self.network_on(snapshot),
        )


def has_volumes(pod: PodInfo) -> bool:
    """Return whether `pod` has volumes that some nodes may lack or that may be in use."""
    return bool(pod.volumes.claims)


def _topologies(metadata: Reader) -> tuple[tuple[str, ...], NetworkTopology | None]:
    """Return the annotations that require a topology, and the request in those of Volcano if it requires one.

    Volcano does not read its annotations on a pod that names a PodGroup.
    """
    annotations = metadata.raw.get("annotations")
    if not isinstance(annotations, Mapping) or not (found := REQUIRED_TOPOLOGIES & annotations.keys()):
        return (), None
    network = None if annotations.get(VOLCANO_GROUP) else NetworkTopology.of_annotations(annotations)
    others = sorted(each for each in found if each not in (VOLCANO_TOPOLOGY, VOLCANO_TIER))
    return tuple(others), network if network is not None and network.is_hard else None


def _defaulted(note: str, resources: PodResources) -> tuple[str, ...]:
    """Return the resources in `resources` whose request LimitRanger has set, according to its `note` on the pod.

    Pod-level requests are not included, because LimitRanger only sets requests of containers.

    Source: k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go, mergePodResourceRequirements
    """
    parts = [each.partition(" request for ") for each in note.partition(": ")[2].split("; ")]
    noted = {name for listed, found, _ in parts if found for name in listed.split(", ")}
    own = resources.requests if resources.of_containers is None else resources.of_containers
    return tuple([name for name, amount in resources.requests.items() if name in noted and own.get(name) == amount])


def _needs_declared_features(spec: Reader, containers: Sequence[Reader]) -> bool:
    if spec.raw.get("hostNetwork") is True and spec.raw.get("hostUsers") is False:
        return True
    return any(
        rule.raw.get("action") == "RestartAllContainers"
        for container in containers
        for rule in container.objects("restartPolicyRules")
    )


def _pairs(amounts: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple([(name, amount) for name, amount in amounts.items() if amount and is_schedulable_resource(name)])


def _gates_of_kueue(spec: Reader) -> list[bool]:
    """Return for each scheduling gate whether it belongs to Kueue."""
    return [each.text("name").startswith(KUEUE_GATES) for each in spec.objects("schedulingGates")]


def _images(containers: Sequence[Reader]) -> tuple[str, ...]:
    return tuple([normalized_image_name(name) for each in containers if (name := each.text("image"))])


def _image_volumes(spec: Reader) -> tuple[str, ...]:
    images = [each.object("image") for each in spec.objects("volumes") if each.raw.get("image") is not None]
    return tuple([normalized_image_name(name) for each in images if (name := each.text("reference"))])


def _device_claims(pod: Reader, metadata: Reader, spec: Reader) -> tuple[PodResourceClaim, ...]:
    namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
    generated = _generated_claims(pod)
    found = []
    for use in spec.objects("resourceClaims"):
        name, template = use.text("resourceClaimName"), use.text("resourceClaimTemplateName")
        own = use.text("name")
        if name:
            found.append(PodResourceClaim(namespace, name, is_template=False))
        elif own not in generated:
            found.append(PodResourceClaim(namespace, template, is_template=True))
        elif generated[own]:
            found.append(PodResourceClaim(namespace, generated[own], is_template=False, owner=_reference(metadata)))
    return tuple(found)


def _reference(metadata: Reader) -> PodReference:
    return PodReference(metadata.text("name"), metadata.text("uid"))


def _generated_claims(pod: Reader) -> Mapping[str, str]:
    """Return the claims that a controller created from templates, by their names in the pod.

    A claim is "" if the pod does not need one.

    Source: k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go, Name
    """
    claims = pod.object("status").objects("resourceClaimStatuses")
    return {each.text("name"): each.text("resourceClaimName") for each in claims}


def _volumes(metadata: Reader, spec: Reader) -> PodVolumes:
    if not spec.raw.get("volumes"):
        return NO_VOLUMES
    return read_volumes(spec, metadata.text("namespace") or DEFAULT_NAMESPACE, _reference(metadata))


def _tolerations(spec: Reader) -> frozenset[Toleration]:
    found = []
    for each in spec.objects("tolerations"):
        if _TEXT_OR_NONE.issuperset(map(type, map(each.raw.get, Toleration._fields))):
            found.append(Toleration.of(each.raw))
        else:
            # The errors are collected; no info is made of such a pod.
            for name in Toleration._fields:
                each.text(name)
    return with_default_tolerations(found)
