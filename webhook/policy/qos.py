"""Settings of the QoS class of pods."""

from typing import Literal

from pydantic import Field

from webhook.policy.fields import StrictModel


class Qos(StrictModel):
    """The QoS class that pods of a type must have.

    A pod is Guaranteed if each of its containers, init containers and sidecars included, has limits of cpu and memory
    and requests equal to them; or if the pod as a whole has both (`spec.resources`).
    """

    class_: Literal["Guaranteed"] | None = Field(default=None, alias="class")
    """`Guaranteed`: missing requests are set to the limits. If absent, resources are left alone."""

    limits_from_requests: bool = False
    """Set missing limits to the requests, too. A limit of memory ends a container that uses more, and one of cpu slows
    it down."""

    whole_cpus: bool = False
    """Ask for a whole number of CPUs in each container beside init containers and sidecars, as the static policy of the
    CPU manager needs for exclusive CPUs."""

    on_missing: Literal["warn", "deny"] = "warn"
    """The handling of a pod that lacks a limit or has a smaller request: admit it with a warning for each, or deny it.
    With `invalidAnnotations: warn`, such a pod is not denied but gets no injection."""
