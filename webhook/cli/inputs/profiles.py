"""Scheduler profiles of `check` and `capacity`: built in, or of a KubeSchedulerConfiguration file."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import click

from webhook.cli.inputs.files import file_option, options, place_of, read_text
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput, unsupported
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.backend_schedulers import BackendSchedulers, listed_schedulers, schedulers_by_name
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.profiles.node_templates import TemplateNode, template_nodes
from webhook.placement.profiles.policy_profiles import profiles_for
from webhook.placement.profiles.profile import DEFAULT, PROFILES, Profile
from webhook.placement.scheduler import Placement, PodSignature, Scheduler, never
from webhook.placement.scorer import Scorer
from webhook.policy.policy import Policy
from webhook.policy.spec.document import PolicySpec

_SUGGESTIONS = 3
_BUILT_IN = PolicySpec()
_CONFIG = "--scheduler-config"

scheduler_options = options(
    click.option(
        "--scheduler-profile",
        metavar="NAME",
        help="`default` (of kube-scheduler), `binpack` (MostAllocated) or `pack-gpus` (least fragmentation of GPUs). "
        "With --scheduler-config: one of its profiles. Default: the schedulerName of each pod; pods of Volcano and KAI "
        "are predicted by their rules.",
    ),
    file_option(_CONFIG, help="A KubeSchedulerConfiguration, read as in kube-scheduler; - for standard input."),
)


class Schedulers:
    """The schedulers, one for each profile.

    A pod is evaluated by the chosen profile, or else by that of its schedulerName.

    If no profile has the schedulerName, the profile of the backend that the policy `spec` sets for it is used, or else
    the profile `fallback`. With `fallback`, the verdict is Unknown instead of Infeasible unless the policy lists the
    schedulerName.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        chosen: str | None,
        templates: Sequence[TemplateNode] = (),
        suggestions: int = _SUGGESTIONS,
        spec: PolicySpec = _BUILT_IN,
        fallback: str | None = None,
    ) -> None:
        make = partial(Scheduler, templates=templates, suggestions=suggestions, temporary_taints=spec.temporary_taints)
        self._schedulers = {name: make(profile) for name, profile in profiles.items()}
        self._by_backend = schedulers_by_name(make, spec.schedulers)
        self._profiles, self._chosen, self._settings, self._fallback = profiles, chosen, spec.schedulers, fallback
        self._listed = listed_schedulers(spec)
        self._unlisted = None if fallback is None else make(profiles[fallback], is_listed=False)

    def place(self, pod: Mapping[str, Any], snapshot: Snapshot) -> Placement:
        """Return the placement of the pod.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        return self.answer(PodSignature.of(pod), pod, snapshot)

    def answer(self, signature: PodSignature, pod: Mapping[str, Any], snapshot: Snapshot) -> Placement:
        """Return the placement of a pod with this signature by the scheduler of `pod`."""
        scheduler = self.scheduler_of(pod)
        if scheduler is None:
            name = field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
            return Placement.unknown(f"the configuration has no profile for the schedulerName {name}")
        return scheduler.answer(signature, snapshot, never)

    def scheduler_of(self, pod: Mapping[str, Any]) -> Scheduler | None:
        """Return the scheduler of `pod`, or None if there is no profile for it."""
        return self._scheduler_named(field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER)

    def scheduler_of_signature(self, asked: PodSignature, otherwise: Scheduler) -> Scheduler:
        """Return the scheduler of a pod with the signature `asked`, or `otherwise` if there is no profile for it."""
        return self._scheduler_named(asked.info.nomination.scheduler_name) or otherwise

    def _scheduler_named(self, name: str) -> Scheduler | None:
        if self._chosen is not None:
            return self._schedulers.get(self._chosen)
        fallback = self._schedulers.get(self._fallback or "") if name in self._listed else self._unlisted
        return self._schedulers.get(name) or self._by_backend.get(name) or fallback

    def has_profile(self, scheduler: str) -> bool:
        """Return whether a profile or a batch scheduler has this name."""
        return scheduler in self._schedulers or scheduler in self._by_backend

    def for_pending(self) -> Scorer:
        """Return a scheduler for the pending pods of the cluster, which finds their nodes without suggestions.

        It uses the chosen profile, or else the profile of each pod, or else the default profile, because a pod of an
        unknown scheduler takes room, too.
        """
        name = self._chosen or self._fallback or DEFAULT_SCHEDULER
        scheduler = Scheduler(self._profiles.get(name) or next(iter(self._profiles.values())))
        return scheduler if self._chosen else BackendSchedulers.of(scheduler, Scheduler, self._settings)

    def name_for(self, pod: Mapping[str, Any]) -> str:
        """Return the name of the profile for `pod`."""
        name: str = self._chosen or field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        return name


# The schedulers as a policy configures them.
SchedulersOf: TypeAlias = Callable[[Policy], Schedulers]


def read_profiles(configuration: str | None) -> Mapping[str, Profile] | None:
    """Return the profiles of a KubeSchedulerConfiguration file by schedulerName, or None if there is no file.

    Raises:
        InvalidInput: the file cannot be read or is not one valid KubeSchedulerConfiguration.
    """
    if configuration is None:
        return None
    return parse_profiles(read_text(configuration, _CONFIG), place_of(configuration))


def read_schedulers(configuration: str | None, name: str | None, *, explains: bool = True) -> SchedulersOf:
    """Return the profiles of the KubeSchedulerConfiguration file, or the built-in ones; `name` selects one for all.

    Without `name`, a pod of a batch scheduler that its policy sets is evaluated by the profile of that scheduler. With
    `explains`, nodes of the policy's templates count as nodes that an autoscaler can add, and a pod that cannot be
    placed gets suggestions.

    Raises:
        InvalidInput: the file cannot be read or is not one valid KubeSchedulerConfiguration, or it has no
            profile `name`.
    """
    configured = read_profiles(configuration)
    fallback = DEFAULT.name if configured is None else None
    names = PROFILES if configured is None else configured
    if name is not None and name not in names:
        raise InvalidInput([unsupported("--scheduler-profile", name, names)])

    def make(policy: Policy) -> Schedulers:
        profiles = profiles_for(policy.spec) if configured is None else configured
        templates = template_nodes(policy.spec.node_templates) if explains else ()
        suggestions = _SUGGESTIONS if explains else 0
        return Schedulers(profiles, name, templates, suggestions, policy.spec, fallback)

    return cache(make)
