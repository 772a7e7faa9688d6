"""Scheduler profiles of `check` and `capacity`: built in, or of a KubeSchedulerConfiguration file."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import click

from webhook.cli.files import FILE, STANDARD_INPUT, read_text
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput, unsupported
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.placement.assumed_pods import AssumedPods
from webhook.placement.backend_schedulers import BackendSchedulers, schedulers_by_name
from webhook.placement.config.loader import parse_profiles
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.gang import GangRequest, gang_of, gang_placement
from webhook.placement.policy_profiles import profiles_for
from webhook.placement.profile import DEFAULT, PROFILES, Profile
from webhook.placement.replicas import Replicas
from webhook.placement.replicas_among import ReplicasAmong, place_replicas_among
from webhook.placement.scheduler import Placement, PodSignature, Scheduler, never
from webhook.placement.scorer import Scorer
from webhook.placement.templates import TemplateNode, template_nodes
from webhook.placement.waiting_pods import WaitingPod
from webhook.policy.policy import Policy
from webhook.policy.scheduler_settings import BUILT_IN_SCHEDULERS, SchedulerSettings

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=Hashable)

_SUGGESTIONS = 3

_profile_option = click.option(
    "--scheduler-profile",
    metavar="NAME",
    help="`default` (of kube-scheduler), `binpack` (MostAllocated) or `pack-gpus` (least fragmentation of GPUs). With "
    "--scheduler-config: one of its profiles. Default: the schedulerName of each pod; pods of Volcano and KAI are "
    "predicted by their rules.",
)
_configuration_option = click.option(
    "--scheduler-config",
    type=FILE,
    metavar="FILE",
    help="A KubeSchedulerConfiguration, read as in kube-scheduler; - for standard input.",
)


def scheduler_options(command: F) -> F:
    """Add `--scheduler-profile` and `--scheduler-config`."""
    return _profile_option(_configuration_option(command))


class Schedulers:
    """A scheduler for each profile. The chosen profile evaluates a pod, else the profile of its schedulerName.

    Without a profile of that name, it is that of the backend that `settings` name, else the profile `fallback`.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        chosen: str | None,
        templates: Sequence[TemplateNode] = (),
        suggestions: int = _SUGGESTIONS,
        settings: Mapping[str, SchedulerSettings] = BUILT_IN_SCHEDULERS,
        fallback: str | None = None,
    ) -> None:
        make = partial(Scheduler, templates=templates, suggestions=suggestions)
        self._schedulers = {name: make(profile) for name, profile in profiles.items()}
        self._by_backend = schedulers_by_name(make, settings)
        self._profiles, self._chosen, self._settings, self._fallback = profiles, chosen, settings, fallback

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
        """Return the scheduler of `pod`; None without a profile for it."""
        if self._chosen is not None:
            return self._schedulers.get(self._chosen)
        name: str = field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        return self._schedulers.get(name) or self._by_backend.get(name) or self._schedulers.get(self._fallback or "")

    def for_pending(self) -> Scorer:
        """Return a scheduler for the pending pods of the cluster, whose nodes are asked for alone.

        It has the chosen profile, else that of each pod, else the default one: a pod of another scheduler takes room,
        too.
        """
        name = self._chosen or self._fallback or DEFAULT_SCHEDULER
        scheduler = Scheduler(self._profiles.get(name) or next(iter(self._profiles.values())))
        return scheduler if self._chosen else BackendSchedulers.of(scheduler, Scheduler, self._settings)

    def place_replicas(
        self, pods: Iterable[Mapping[str, Any]], asked: int, assumed: AssumedPods[K]
    ) -> ReplicasAmong[K]:
        """Return how many of `asked` pods fit beside the pods with `assumed`, with the profile of the first one.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        left = iter(pods)
        first = next(left)
        scheduler = self.scheduler_of(first)
        if scheduler is None:
            snapshot = assumed.base
            unknown = self.place(first, snapshot)
            found = Replicas(asked, 0, {}, unknown, unknown, is_complete=False, snapshot=snapshot)
            return ReplicasAmong(found, snapshot, assumed)
        return place_replicas_among(scheduler, assumed, chain((first,), left), asked)

    def in_gang(
        self,
        gang: GangRequest,
        pod: Mapping[str, Any],
        own: Placement,
        assumed: AssumedPods[Any],
        policy: Policy,
    ) -> Placement:
        """Return the placement of the gang of `pod`, which has the placement `own` without the others.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        scheduler = self.scheduler_of(pod)
        if scheduler is None:
            return own
        waiting = WaitingPod.of(pod)
        found, templates = gang_of(gang, waiting, policy.spec.key_domain), template_nodes(policy.spec.node_templates)
        return gang_placement(Scheduler(scheduler.profile), found, waiting, own, assumed, templates=templates)

    def explain(self, pod: Mapping[str, Any], snapshot: Snapshot) -> NodeToStatus:
        """Return the reasons of each node that cannot take the pod; empty without a profile for the pod."""
        scheduler = self.scheduler_of(pod)
        return scheduler.explain(PodSignature.of(pod), snapshot) if scheduler else {}

    def fitting_nodes(self, pod: Mapping[str, Any], snapshot: Snapshot) -> tuple[str, ...]:
        """Return the nodes that can take the pod; none without a profile for the pod."""
        scheduler = self.scheduler_of(pod)
        rows = scheduler.feasible_rows(PodSignature.of(pod), snapshot) if scheduler else ()
        return tuple(snapshot.nodes[row].node.name for row in rows)

    def nodes_without_pods(self, pod: Mapping[str, Any], snapshot: Snapshot) -> tuple[str, ...]:
        """Return the nodes that could take the pod if no pod was running; none without a profile for the pod."""
        scheduler = self.scheduler_of(pod)
        return scheduler.nodes_without_pods(PodSignature.of(pod), snapshot) if scheduler else ()

    def name_for(self, pod: Mapping[str, Any]) -> str:
        """Return the name of the profile for `pod`."""
        name: str = self._chosen or field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        return name


class PolicySchedulers:
    """The schedulers of each policy, made when they are first asked for."""

    def __init__(self, make: Callable[[Policy], Schedulers]) -> None:
        self._make = make
        self._made: dict[Policy, Schedulers] = {}

    def of(self, policy: Policy) -> Schedulers:
        """Return the schedulers as `policy` configures them."""
        if policy not in self._made:
            self._made[policy] = self._make(policy)
        return self._made[policy]


def read_schedulers(
    configuration: str | None,
    name: str | None,
    *,
    with_templates: bool = False,
    suggestions: int = _SUGGESTIONS,
) -> PolicySchedulers:
    """Return the profiles of the KubeSchedulerConfiguration file, or the built-in ones; `name` selects one for all.

    Without `name`, a pod of a batch scheduler of its policy has its profile. An autoscaler can add the nodes of the
    policy's templates, if they are wanted. A pod that cannot be placed gets up to `suggestions`.

    Raises:
        InvalidInput: the file cannot be read or is not one valid KubeSchedulerConfiguration, or it has no
            profile `name`.
    """
    configured: Mapping[str, Profile] | None = None
    fallback = DEFAULT.name if configuration is None else None
    if configuration is not None:
        place = "<stdin>" if configuration == STANDARD_INPUT else configuration
        configured = parse_profiles(read_text(configuration, "--scheduler-config"), place)
    names = PROFILES if configured is None else configured
    if name is not None and name not in names:
        raise InvalidInput([unsupported("--scheduler-profile", name, names)])

    def make(policy: Policy) -> Schedulers:
        profiles = profiles_for(policy.spec) if configured is None else configured
        templates = template_nodes(policy.spec.node_templates) if with_templates else ()
        return Schedulers(profiles, name, templates, suggestions, policy.spec.schedulers, fallback)

    return PolicySchedulers(make)
