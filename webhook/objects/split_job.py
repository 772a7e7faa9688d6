"""The warning about an object whose templates go to two schedulers, because only some name a workload type. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.workloads.pod_set import PodSet
from webhook.objects.gangs import Role
from webhook.policy.policy import Policy

_LONGEST_NAME = 63


class ScheduledSet(NamedTuple):
    """The pods of a template, and what the policy makes them: their type, or empty, and their scheduler."""

    pods: PodSet
    workload_type: str
    scheduler: str

    @classmethod
    def as_written(cls, pods: PodSet) -> "ScheduledSet":
        """Return pods that the webhook leaves alone."""
        return cls(pods, "", str(field(pods.common, "spec", "schedulerName") or DEFAULT_SCHEDULER))


def split_job(sets: Iterable[ScheduledSet], policy: Policy) -> Iterator[str]:
    """Yield a warning for each template without a type that goes to another scheduler than a typed one."""
    typed: dict[str, ScheduledSet] = {}
    others = []
    for each in sets:
        if each.workload_type:
            typed.setdefault(each.scheduler, each)
        elif each.scheduler == DEFAULT_SCHEDULER:
            others.append(each)
    elsewhere = next((each for name, each in typed.items() if name != DEFAULT_SCHEDULER), None)
    if elsewhere is None or DEFAULT_SCHEDULER in typed:
        return
    key, scheduler = policy.keys.workload_type, cut(elsewhere.scheduler, _LONGEST_NAME)
    for each in others:
        yield (
            f"{each.pods.path}: no {key}, so its pods go to {each.scheduler}, and those of {elsewhere.pods.path} to "
            f"{scheduler}: set {key} or spec.schedulerName there, too"
        )


def split_of_roles(pods: Sequence[PodSet], roles: Iterable[Role], policy: Policy) -> Iterator[str]:
    """Yield the warnings about an object with the templates `pods`, of which `roles` were evaluated."""
    typed = {each.pods.path: each.result.injection for each in roles if each.result.injection.workload_type}
    sets = (
        ScheduledSet(each, found.workload_type, found.references.scheduler)
        if (found := typed.get(each.path))
        else ScheduledSet.as_written(each)
        for each in pods
    )
    yield from split_job(sets, policy)
