"""A policy document with its name, revision and annotation keys, as the rules read it."""

import hashlib
from collections.abc import Collection
from copy import copy
from typing import Literal, NamedTuple

import orjson

from webhook.kube.pod.card_names import CARD_BY_OTHER_NAME
from webhook.kube.workloads.workload_kinds import Kinds, kinds_by_name
from webhook.policy.keys import Keys
from webhook.policy.spec.accelerators import Accelerator
from webhook.policy.spec.admission import NamespaceSelector
from webhook.policy.spec.document import PolicyDocument, PolicySpec
from webhook.policy.spec.field_types import matches_any
from webhook.policy.spec.workloads import WorkloadType

REVISION_LENGTH = 12
WITHDRAWAL = "Withdrawal"
"""The first of the rules on record of a pod from which injected tolerations were taken back."""
_WITHOUT_EFFECT = {"tests", "namespace_selector", "priority", "unknown_namespace", "missing_policy", "reclaim"}


class Withheld(NamedTuple):
    """A fixed decision on every pod, because the policy in force for the pod is not known."""

    handling: Literal["leave", "deny"]
    reason: str


class Policy:
    """An immutable policy. If `withheld` is set, it decides on pods instead of the rules.

    `kinds` are the kinds that create pods: the built-in kinds, and those that the policy adds.

    `revision` is a hash of the content including all defaults, without test cases and the selection of namespaces. Two
    files with the same meaning have the same revision; comments, the order of keys and explicit defaults do not matter.
    `identity` is `NAME@REVISION`, which is written to pods.
    """

    def __init__(self, document: PolicyDocument) -> None:
        self.document = document
        self.withheld: Withheld | None = None
        self.name: str = document.metadata.name
        self.spec: PolicySpec = document.spec
        self.keys = Keys(document.spec.key_domain)
        self.kinds: Kinds = kinds_by_name(each.facts() for each in document.spec.workload_kinds)
        self.node_usage_key = f"{document.spec.key_domain}/node.usage"
        self.policy_annotation = f"{document.spec.key_domain}/placement-policy"
        self.rules_annotation = f"{document.spec.key_domain}/placement-rules"
        self.known_annotations = frozenset((*self.keys, self.policy_annotation, self.rules_annotation))
        self.annotation_names = frozenset(key.partition("/")[2] for key in self.keys)
        self.spread_group_label = f"{document.spec.key_domain}/spread-group"
        self.gang_group_label = f"{document.spec.key_domain}/gang-group"
        self._cards = tuple(map(_names_of, document.spec.accelerators))
        self.reads_amounts = any(each.max_cards_per_pod is not None for each in document.spec.namespace_limits) or any(
            each.qos.class_ is not None for each in document.spec.workload_types.values()
        )
        # Test cases state what the policy does, and the selection for which namespaces; they change nothing of it.
        spec = document.spec.model_dump(mode="json", by_alias=True, exclude=_WITHOUT_EFFECT)
        canonical = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        self.revision = hashlib.sha256(canonical).hexdigest()[:REVISION_LENGTH]
        self.identity = f"{self.name}@{self.revision}"

    def with_invalid_annotations(self, handling: Literal["deny", "warn"]) -> "Policy":
        """Return the policy with another handling of invalid annotations. The revision stays the same."""
        if handling == self.spec.invalid_annotations:
            return self
        other = copy(self)
        other.spec = self.spec.model_copy(update={"invalid_annotations": handling})
        return other

    def withheld_as(self, withheld: Withheld, name: str = "") -> "Policy":
        """Return this policy, called `name` if given, with the fixed decision `withheld` on every pod."""
        other = copy(self)
        other.withheld = withheld
        if name:
            other.name, other.revision = name, "rejected"
        # Results are cached by the identity.
        other.identity = f"{other.name}@{other.revision} ({withheld.handling}: {withheld.reason})"
        return other

    def selected_by(self, selector: NamespaceSelector, priority: int) -> "Policy":
        """Return the policy for the namespaces that `selector` selects. It is enforced for every pod there."""
        other = copy(self)
        chosen = {"namespace_selector": selector, "priority": priority, "mode": "enforce", "canary_percent": 100}
        other.spec = self.spec.model_copy(update=chosen)
        return other

    def accelerators_of(self, resources: Collection[str]) -> list[Accelerator]:
        """Return the accelerators that have one of `resources`, under any of its names, in the order of the policy."""
        names = {*resources, *map(CARD_BY_OTHER_NAME.get, resources, resources)}
        # The loops call no function of Python: this is asked for every pod.
        found = []
        for accelerator, exact, prefixes in self._cards:
            if not exact.isdisjoint(names):
                found.append(accelerator)
                continue
            for name in names if prefixes else ():
                if name.startswith(prefixes):
                    found.append(accelerator)
                    break
        return found


def _names_of(accelerator: Accelerator) -> tuple[Accelerator, frozenset[str], tuple[str, ...]]:
    """Return an accelerator with its resources, and with the prefixes of those that end with `*`."""
    prefixes = tuple(each.removesuffix("*") for each in accelerator.resources if each.endswith("*"))
    return accelerator, frozenset(each for each in accelerator.resources if not each.endswith("*")), prefixes


def allows_namespace(workload_type: WorkloadType, namespace: str) -> bool:
    """Return whether pods of `namespace` may use this type."""
    return matches_any(namespace, workload_type.allowed_namespaces)


def opt_out_namespaces(spec: PolicySpec) -> tuple[str, ...]:
    """Return the patterns of the namespaces whose pods may opt out with `inject: disabled`."""
    if spec.opt_out_namespaces is not None:
        return spec.opt_out_namespaces
    return () if spec.placement_check.floor == "deny" else ("*",)
