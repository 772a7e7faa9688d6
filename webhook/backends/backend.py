"""The base of all scheduler backends. A backend is a kind of scheduler, with the fields of a pod that it reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from webhook.cluster.batch.network_topology import NetworkTopology
from webhook.documents.documents import field


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The requests to a batch scheduler in a pod's annotations. An attribute without an annotation is None."""

    queue: str | None = None
    gang: str | None = None
    gang_size: int | None = None
    gpu_fraction: str | None = None
    """The share of one card, a decimal between 0 and 1."""
    preemptible: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is requested."""
        return self == _NOTHING


_NOTHING = BatchRequest()
FieldPath = tuple[str, ...]


class PodField(NamedTuple):
    """A text field of a pod, by its path, and the value that a scheduler reads there."""

    path: FieldPath
    value: str

    def __str__(self) -> str:
        if self.path[0] == "metadata":
            return f"{self.path[1].removesuffix('s')} {self.path[2]}={self.value}"
        return f"{'.'.join(self.path)} {self.value}"


def label(key: str, value: str) -> PodField:
    """Return the label `key` of a pod."""
    return PodField(("metadata", "labels", key), value)


def annotation(key: str, value: str) -> PodField:
    """Return the annotation `key` of a pod."""
    return PodField(("metadata", "annotations", key), value)


class Expressed(NamedTuple):
    """A request as the pod fields that a scheduler reads, and the parts that the scheduler does not support.

    `missing` are pairs: an attribute of `BatchRequest` that the scheduler ignores wholly or in part, and a text such as
    "has no queues", which follows the name of the scheduler in a message.
    """

    fields: Sequence[PodField] = ()
    missing: Sequence[tuple[str, str]] = ()


class DomainRequest(NamedTuple):
    """The request that the gang of `pod` runs on nodes with one value of the label `key`.

    If `is_required` is false, it is a preference. `request` has the other requests of the pod. `topology` and `tier`
    are what the policy states for the scheduler: the name of its Topology, and the number of its tier with that label;
    empty and 0 if it states none. If `is_in_objects` is true, the webhook also writes to the objects that create pods.
    """

    key: str
    is_required: bool
    request: BatchRequest
    pod: Mapping[str, Any]
    topology: str = ""
    tier: int = 0
    is_in_objects: bool = False

    def names_group(self, group_at: FieldPath) -> bool:
        """Return whether the pod names a PodGroup at `group_at`, or will name one."""
        return self.request.gang is not None or bool(field(self.pod, *group_at))

    @property
    def controller_kind(self) -> str:
        """Return the kind of the object that controls the pod, or "" if there is none."""
        return str(field(self._controller, "kind") or "")

    @property
    def is_of_patched_template(self) -> bool:
        """Return whether the webhook writes to the template of the pod: that of an object with a name, before its pods.

        The reference of a pod to its object has a UID once the object exists.
        """
        owner = self._controller
        return self.is_in_objects and not field(owner, "uid") and not str(field(owner, "name")).endswith("-")

    @property
    def _controller(self) -> Any:
        owners = self.pod["metadata"].get("ownerReferences") or ()
        return next((each for each in owners if field(each, "controller") is True), None)


class InDomain(NamedTuple):
    """A `DomainRequest` as the fields that a scheduler reads: of the pod, and of its top owner.

    `missing` is empty, or the reason why the scheduler ignores the request, which follows its name in a message.
    """

    fields: Sequence[PodField] = ()
    of_owner: Sequence[tuple[FieldPath, Any]] = ()
    missing: str = ""


class BatchNames(NamedTuple):
    """The queue and the group that an admitted pod names in the fields that `backend` reads, or "" if it names none.

    `has_owner` is true if the scheduler may read the queue from an owner of the pod instead. `starts_whole` is true if
    the scheduler holds the pods of a gang until all of them can start, or, for Kueue, until its quota has room for all
    of them. `is_replaced` is true if the scheduler puts the pod into another group. `required_level` is the node label
    of the domain in which it must place them together, or "". `network` is the request of Volcano that the pod itself,
    or its Job, has for that.
    """

    backend: str
    queue: str
    group: str
    has_owner: bool
    starts_whole: bool = False
    is_replaced: bool = False
    required_level: str = ""
    network: NetworkTopology | None = None


Terms = Mapping[str, Callable[[Any], PodField] | str]
"""By attribute of `BatchRequest`: the field of a pod for its value, or what the scheduler lacks (`Expressed`)."""

PREFERRED_NODE_AFFINITY = "preferred node affinity"
SPREAD_CONSTRAINTS = "topology spread constraints with DoNotSchedule"
SIZE_IN_POD_GROUP = "reads the size of a gang from minMember of its PodGroup: name it"
"""The reason to name a PodGroup for a scheduler that reads the size of a gang from it."""


class Backend:
    """One kind of scheduler. A subclass sets the attributes that apply to it. `name` is its name in the policy."""

    name: ClassVar[str]
    api_groups: ClassVar[Sequence[str]] = ()
    """The API groups that its CRDs have: none of them is served where it is not installed."""
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = ()
    """The fields by which it starts the pods of a gang together or not at all: a pod has all of one of these sets."""
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = ()
    """The API groups and kinds of the controllers whose pods it makes a gang of by itself."""
    profile: ClassVar[str] = ""
    """The profile that predicts its choice. Empty means the profile that is chosen for kube-scheduler."""
    queue_at: ClassVar[Sequence[tuple[str, str]]] = ()
    """The places of the queue of a pod: `labels` or `annotations`, and the key; the first that is set counts."""
    group_at: ClassVar[FieldPath] = ()
    """The place of the name of a PodGroup that must exist. Empty means that there is none."""
    required_level_at: ClassVar[str] = ""
    """The annotation with the node label of the domain in which all pods of a gang must be placed."""
    ignores: ClassVar[Sequence[str]] = ()
    """The constraints of a pod that it does not follow, among PREFERRED_NODE_AFFINITY and SPREAD_CONSTRAINTS."""
    terms: ClassVar[Terms] = {}
    """The ways to express a request, in the order of the written fields and of the warnings."""

    domain_keys: ClassVar[Sequence[str]] = ()
    """The beginnings of the annotations that state a domain. With one of the user, the webhook adds none."""
    keeps_by_affinity: ClassVar[bool] = False
    """True if pod affinity keeps a gang in one domain, because the scheduler reads no fields for that."""

    @classmethod
    def in_domain(cls, domain: DomainRequest) -> InDomain:  # noqa: ARG003 - subclasses read it
        """Return the fields that keep the gang in one domain, or none if pod affinity does."""
        return InDomain()

    @classmethod
    def express(cls, request: BatchRequest) -> Expressed:
        """Return `request` as the pod fields that the scheduler reads."""
        fields, missing = [], []
        for attribute, term in cls.terms.items():
            value = getattr(request, attribute)
            # The PodGroup of a gang that is named has its size.
            if value is None or (attribute == "gang_size" and request.gang is not None):
                continue
            if isinstance(term, str):
                missing.append((attribute, term))
            else:
                fields.append(term(value))
        return Expressed(fields, missing)
