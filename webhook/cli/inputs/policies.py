"""The policies of the offline commands, and the one for the pods of a namespace."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook.cli.inputs.files import PATH, file_option
from webhook.cli.output.terminal import echo, warn
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.documents.documents import Document, field
from webhook.documents.field import prefixed_errors
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import load_policies, policy_set
from webhook.policy.policy_set import PolicySet

_MOST_CHARACTERS = 200
_NO_EFFECT = "has no effect: a single policy is that of all namespaces; give the default policy, too, to select by it"

policies_option = file_option(
    "--policy",
    "policies",
    kind=PATH,
    multiple=True,
    help="A PlacementPolicy, or several in one file or in several: each is for the namespaces that it selects, the one "
    "without a namespaceSelector for the others. Default: on a live cluster the one in force, else the built-in one.",
)


def read_policies(paths: Sequence[Path], flag: str = "--policy") -> PolicySet:
    """Return the policies of the files given as `flag`, or the built-in one. Print the unused policies.

    Raises:
        InvalidInput: a document is not a valid PlacementPolicy, or they cannot be in force together.
    """
    if not paths:
        return PolicySet(built_in_policy())
    found = load_policies(paths, flag)
    policies = policy_set(found)
    if not policies.others and policies.spec.namespace_selector is not None:
        warn(f"{found[0].place}: spec.namespaceSelector {_NO_EFFECT}")
    for warning in policies.conflicts().values():
        warn(warning)
    return policies


@dataclass(frozen=True, slots=True)
class PlacedPolicies:
    """Policies, and the place of each by its identity. A policy from a file has no place.

    `stands_in` is true if the default policy of a live cluster is not known, and the built-in one is in its place.
    """

    policies: PolicySet
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stands_in: bool = False

    def place_of(self, policy: Policy) -> str:
        """Return the place of a policy, such as `PlacementPolicy, in force`, or "" for a policy from a file."""
        return self.places.get(policy.identity, "")

    def is_known(self, policy: Policy) -> bool:
        """Return whether `policy` is one that was given or is in force, and does not stand in for an unknown one."""
        return not self.stands_in or policy.identity != self.policies.default.identity


def policy_to_json(policy: Policy, place: str = "") -> dict[str, str]:
    """Return a policy as in the JSON of commands, with its `place` if it has one."""
    return {"name": policy.name, "revision": policy.revision} | ({"place": place} if place else {})


def is_namespace(content: Mapping[str, Any]) -> bool:
    """Return whether an object is a Namespace."""
    return content.get("kind") == "Namespace" and content.get("apiVersion") == "v1"


class NamespacePolicies:
    """Returns the policy for a namespace as the server chooses it, and prints the namespaces with unknown labels.

    The labels of a Namespace in `documents` are merged over those in `snapshot`, as after `kubectl apply`. The
    annotations of a Namespace in `documents` are not used as defaults of its pods; a warning reports this.

    Raises:
        InvalidInput: a Namespace of `documents` is malformed.
    """

    def __init__(
        self, policies: PolicySet, snapshot: Snapshot | None = None, documents: Iterable[Document] = ()
    ) -> None:
        self._policies = policies
        self._snapshot = snapshot
        self._labels: dict[str, Mapping[str, str]] = {}
        self._known: dict[str, Policy] = {}
        if policies.others:
            self._labels = {name: each.labels for name, each in (snapshot.namespaces if snapshot else {}).items()}
            for each in documents:
                if is_namespace(each.content):
                    self._add(each)

    @property
    def are_several(self) -> bool:
        """True if there is more than one policy to choose from."""
        return bool(self._policies.others)

    def of(self, content: Mapping[str, Any]) -> Policy:
        """Return the policy for the pods of an object, by its namespace."""
        name = field(content, "metadata", "namespace")
        return self.of_namespace(name if isinstance(name, str) and name else DEFAULT_NAMESPACE)

    def of_namespace(self, name: str) -> Policy:
        """Return the policy for the namespace."""
        if name not in self._known:
            labels = self._labels.get(name)
            if labels is None and self._policies.selects_by_labels:
                text = f"namespace {name}: labels not known, so only policies that select it by its name are considered"
                echo(f"{text}; give its Namespace with -f or in the cluster", err=True)
            self._known[name] = self._policies.of_namespace(name, labels)
        return self._known[name]

    def _add(self, document: Document) -> None:
        with prefixed_errors(document.place):
            namespace = Namespace.of(document.content)
        name = str(field(document.content, "metadata", "name"))
        self._labels[name] = {**self._labels.get(name, {}), **namespace.labels}
        self._warn_of_defaults(name, namespace.annotations)

    def _warn_of_defaults(self, name: str, annotations: Mapping[str, str]) -> None:
        """Warn about annotations that are not used as defaults of the pods, because the cluster does not have them."""
        applied = self._snapshot.namespace_annotations(name) if self._snapshot else {}
        prefix = f"{self._policies.of_namespace(name, self._labels[name]).spec.key_domain}/"
        ignored = [key for key, value in annotations.items() if key.startswith(prefix) and applied.get(key) != value]
        if ignored:
            keys = cut(", ".join(ignored), _MOST_CHARACTERS)
            text = f"namespace {name}: annotations of a file of -f are no defaults of its pods: {keys}"
            warn(f"{text}; give the Namespace in the file of --cluster")
