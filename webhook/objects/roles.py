"""The roles of a workload object: sets of pods that are admitted and placed alike."""

from dataclasses import dataclass

from webhook.kube.pod_set import PodSet
from webhook.mutated_pod import Mutated
from webhook.placement.replicas import Replicas
from webhook.pod_content import PodContent


@dataclass(frozen=True, slots=True)
class Role:
    """A set of pods with the result of the policy for its pods."""

    pods: PodSet
    result: Mutated
    content: PodContent
    """The first pod as it is written."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A role, and how many of its replicas fit."""

    role: Role
    found: Replicas
