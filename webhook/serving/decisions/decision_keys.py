"""The cache keys of decisions: everything except the cluster that a decision depends on."""

from hashlib import blake2b
from typing import NamedTuple

from webhook.admission.pod_content import PodContent
from webhook.policy.policy import Policy

_MAX_KEY_BYTES = 2048


class ContentKey(NamedTuple):
    """Everything except the cluster that a result for a pod depends on. A long `content` is replaced by its hash."""

    namespace: str
    content: bytes
    """The fields of the pod that are read, and the annotations of its namespace."""
    policy: str
    """Its identity: the policies of two namespaces can be equal but for the name, which is written to the pod."""
    extended_resources: tuple[str, ...] = ()
    """The names of those that the pod requests: without its containers, they are not in `content`."""

    @classmethod
    def of_decision(cls, content: PodContent, policy: Policy) -> "ContentKey | None":
        """Return the key for the decision on the pod in `content`. A malformed pod has none."""
        data = content.data
        if data is None:
            return None
        return cls(content.namespace, data if len(data) <= _MAX_KEY_BYTES else _hash(data), policy.identity)

    @classmethod
    def of_rules(cls, content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> "ContentKey | None":
        """Return the key for the result of the rules. A malformed pod has none.

        Containers and volumes are included only if the policy reads amounts.
        """
        data = content.data if policy.reads_amounts else content.data_without_containers
        if data is None:
            return None
        data = data if len(data) <= _MAX_KEY_BYTES else _hash(data)
        return cls(content.namespace, data, policy.identity, extended_resources)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()
