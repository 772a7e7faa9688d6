"""Settings of the schedulers that pods are assigned to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from webhook.policy.fields import StrictModel

BackendName = Literal["default", "volcano", "kai", "coscheduling", "native"]


class SchedulerSettings(StrictModel):
    """The kind of a scheduler, and what the webhook adds for its pods."""

    backend: BackendName = "default"
    """The kind: `default`, a profile of kube-scheduler; `volcano`; `kai`; `coscheduling`, a profile with the plugin of
    scheduler-plugins; or `native`, kube-scheduler with its own gang scheduling. It decides the labels, annotations and
    fields that the annotations `queue`, `gang`, `gpu-fraction` and `preemptible` become. See docs/schedulers.md."""

    bin_packing_hint: bool = True
    """Add the preferred podAffinity of bin-packing to pods of this scheduler, beside what the scheduler packs by
    itself."""


_DEFAULT = SchedulerSettings()

BUILT_IN_SCHEDULERS: Mapping[str, SchedulerSettings] = MappingProxyType(
    {"volcano": SchedulerSettings(backend="volcano"), "kai-scheduler": SchedulerSettings(backend="kai")}
)


def settings_of(schedulers: Mapping[str, SchedulerSettings], name: str) -> SchedulerSettings:
    """Return the settings of the scheduler `name`: those of the policy, else the built-in ones, else the default."""
    return schedulers.get(name) or BUILT_IN_SCHEDULERS.get(name) or _DEFAULT
