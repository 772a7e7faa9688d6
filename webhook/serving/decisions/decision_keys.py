"""The cache keys of decisions: everything except the cluster that a decision depends on."""

from hashlib import blake2b
from typing import NamedTuple

from webhook.admission.pod_content import PodContent
from webhook.policy.policy import Policy

_MAX_KEY_BYTES = 2048


class DecisionKey(NamedTuple):
    """Everything that the policy's result depends on. A long `content` is replaced by its hash."""

    namespace: str
    content: bytes
    """The fields of the pod that are read, and the annotations of its namespace."""
    policy: str
    """Its identity: the policies of two namespaces can be equal but for the name, which is written to the pod."""

    @classmethod
    def of(cls, content: PodContent, policy: Policy) -> "DecisionKey | None":
        """Return the key of the pod in `content`, or None if it is malformed."""
        data = content.data
        return None if data is None else cls(content.namespace, _short(data), policy.identity)


class RulesKey(NamedTuple):
    """Everything that the rules' result depends on.

    Containers and volumes are included only if the policy reads amounts.
    """

    namespace: str
    content: bytes
    extended_resources: tuple[str, ...]
    policy: str

    @classmethod
    def of(cls, content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> "RulesKey | None":
        """Return the key of the pod in `content`, which requests `extended_resources`, or None if it is malformed."""
        data = content.data if policy.reads_amounts else content.data_without_containers
        return None if data is None else cls(content.namespace, _short(data), extended_resources, policy.identity)


def _short(data: bytes) -> bytes:
    return data if len(data) <= _MAX_KEY_BYTES else blake2b(data, digest_size=32).digest()
