"""The part of a new pod that is kept for a replay: only the fields that policies and the scorer read.

Left out are images, environments, commands, volumes that do not restrict the node, and the values of annotations of
other programs. Such an annotation can repeat all of these (`kubectl.kubernetes.io/last-applied-configuration`). The
keys of annotations are kept, because a policy compares them with its own.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import orjson

from webhook.admission.missed import Scope
from webhook.admission.pod_content import JsonObject
from webhook.backends import kai, kueue, volcano
from webhook.backends.registry import BACKENDS
from webhook.kube.names import KAI_SHARE_DEVICES, KAI_SHARES
from webhook.kube.pod.pod_view import PodView
from webhook.kube.pod.volumes import RESTRICTING
from webhook.policy.spec.document import PolicySpec

# The annotations that schedulers read, beside those of the policy, and the beginnings of those about domains.
_OF_SCHEDULERS = frozenset(
    (
        *(volcano.QUEUE, volcano.GROUP, volcano.PREEMPTABLE),
        *(kai.GROUP, *KAI_SHARES, KAI_SHARE_DEVICES),
        kueue.TOTAL_COUNT,
    )
)
_ABOUT_DOMAINS = tuple(key for backend in BACKENDS.values() for key in backend.domain_keys)
_DEFAULT_DOMAIN = PolicySpec().key_domain
_NO_POD = "it holds no pod with its namespace and groups"
_OWNER = ("apiVersion", "kind", "name", "uid", "controller")


class RecordedPod(NamedTuple):
    """A pod as it was recorded.

    `scope` is the namespace of the pod at its admission, or None if it was not known; `groups` are the groups of the
    user.
    """

    pod: JsonObject
    scope: Scope | None = None
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: JsonObject, scope: Scope | None, groups: Sequence[str], domains: Collection[str]) -> "RecordedPod":
        """Return the part of `pod` to record. Annotations whose domain is not in `domains` get empty values.

        Raises:
            ValueError: the metadata or the spec of the pod is not an object.
        """
        if not (isinstance(pod.get("metadata"), dict) and isinstance(pod.get("spec"), dict)):
            raise ValueError(_NO_POD)  # noqa: TRY004 - of a client, not of the code
        if scope is not None:
            read = {key: value for key, value in scope.annotations.items() if _domain(key) in domains}
            scope = Scope(read, dict(scope.labels))
        return cls(read_part(pod, domains), scope, tuple(groups))

    @classmethod
    def parse(cls, content: bytes) -> "RecordedPod":
        """Return the pod in the `content` that `serialised` returned.

        Raises:
            ValueError: the content is not a recorded pod.
        """
        try:
            found = orjson.loads(content)
            namespace, pod = found["namespace"], found["pod"]
            scope = None if namespace is None else Scope(dict(namespace["annotations"]), dict(namespace["labels"]))
            if isinstance(pod["metadata"], dict) and isinstance(pod["spec"], dict):
                return cls(pod, scope, tuple(found["groups"]))
        except (KeyError, TypeError) as error:
            raise ValueError(_NO_POD) from error
        raise ValueError(_NO_POD)

    def serialised(self) -> bytes:
        """Return the pod as JSON. Equal pods have equal JSON.

        Raises:
            ValueError: the pod is nested too deeply.
        """
        scope = None if self.scope is None else {"annotations": self.scope.annotations, "labels": self.scope.labels}
        content = {"groups": self.groups, "namespace": scope, "pod": self.pod}
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def kept_domains(spec: PolicySpec) -> set[str]:
    """Return the domains of the annotations whose values are recorded under a policy."""
    return {_DEFAULT_DOMAIN, spec.key_domain, *spec.former_key_domains}


def read_part(pod: JsonObject, domains: Collection[str]) -> JsonObject:
    """Return the fields of `pod`, a raw API object, that policies and the scorer read.

    Raises:
        ValueError: the pod is malformed, or nested too deeply.
    """
    view = PodView.of(pod)
    if view is None:
        raise ValueError(_NO_POD)
    read: JsonObject = orjson.loads(view.created())
    metadata, spec = read["metadata"], read["spec"]
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {
            key: value if _is_read(key) or _domain(key) in domains else "" for key, value in annotations.items()
        }
    if isinstance(owners := metadata.get("ownerReferences"), list):
        metadata["ownerReferences"] = [_some(each, _OWNER) if isinstance(each, dict) else each for each in owners]
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.pop("image", None)
    if volumes := spec.get("volumes"):
        # A driver can get secrets in the parts that do not decide on the place.
        spec["volumes"] = [_some(each, ("name", *RESTRICTING)) for each in volumes]
    return read


def _is_read(key: str) -> bool:
    return key in _OF_SCHEDULERS or key.startswith(_ABOUT_DOMAINS)


def _some(found: JsonObject, keys: Collection[str]) -> JsonObject:
    return {key: found[key] for key in keys if key in found}


def _domain(key: str) -> str:
    return key.partition("/")[0]
