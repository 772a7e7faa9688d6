"""The only module that maps the name of a scheduler to the Scheduler that predicts its choice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.backends.registry import BACKENDS
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.framework.result import Placement
from webhook.placement.profiles.profile import Profile
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS, SchedulerSettings
from webhook.runtime.byte_cache import ByteCache

BATCH_PROFILES: Mapping[str, Profile] = {each.name: each for each in (VOLCANO, KAI)}
_NO_PROFILES: Mapping[str, Profile] = {}
# The default one, that of names that the policy does not list, and those of backends.
MOST_SCHEDULERS = 2 + len(BATCH_PROFILES)


def schedulers_by_name(
    make: Callable[[Profile], Scheduler], settings: Mapping[str, SchedulerSettings]
) -> dict[str, Scheduler]:
    """Return a scheduler by name for each scheduler whose backend has its own profile.

    `make` creates a scheduler from a profile. `settings` are those of the policy; they override the built-in ones.
    Names with the same profile share a scheduler.
    """
    made: dict[str, Scheduler] = {}
    found = {}
    for name, each in {**BUILT_IN_SCHEDULERS, **settings}.items():
        profile = BACKENDS[each.backend].profile
        if profile:
            if profile not in made:
                made[profile] = make(BATCH_PROFILES[profile])
            found[name] = made[profile]
    return found


def listed_schedulers(spec: PolicySpec) -> frozenset[str]:
    """Return the names of the schedulers that a policy lists. The rules of all other schedulers are not known."""
    return frozenset((DEFAULT_SCHEDULER, *BUILT_IN_SCHEDULERS, *spec.allowed_schedulers, *spec.schedulers))


@dataclass(slots=True)
class Unlisted:
    """The scheduler for all names that the policy `spec` does not list. It is created on first use."""

    make: Callable[[], Scheduler]
    spec: PolicySpec
    made: Scheduler | None = None

    @property
    def scheduler(self) -> Scheduler:
        """Return the scheduler."""
        if self.made is None:
            self.made = self.make()
        return self.made


@dataclass(frozen=True, slots=True)
class BackendSchedulers:
    """Predicts with the scheduler of each pod: one of `by_name`, or else `unlisted`, or else `default`."""

    default: Scheduler
    by_name: Mapping[str, Scheduler]
    unlisted: Unlisted | None = None

    @classmethod
    def of(
        cls,
        default: Scheduler,
        make: Callable[[Profile], Scheduler],
        settings: Mapping[str, SchedulerSettings],
        profiles: Mapping[str, Profile] = _NO_PROFILES,
        unlisted: Unlisted | None = None,
    ) -> "BackendSchedulers":
        """Return the schedulers that `make` creates for the policy's `settings` and, before them, `profiles`."""
        configured = {name: make(profile) for name, profile in profiles.items()}
        return cls(default, {**schedulers_by_name(make, settings), **configured}, unlisted)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """The caches, for metrics."""
        others = (self.unlisted.made,) if self.unlisted is not None and self.unlisted.made is not None else ()
        own = {id(each): each for each in (self.default, *self.by_name.values(), *others)}
        return tuple(cache for each in own.values() for cache in each.caches)

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement on `snapshot` of a pod with the signature `asked`."""
        return self.scheduler_of(asked).answer(asked, snapshot, expired)

    def answer_alone(self, asked: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement without suggestions."""
        return self.scheduler_of(asked).answer_alone(asked, snapshot, expired)

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Rows:
        """Return the rows of the nodes of `snapshot` that pass every filter."""
        return self.scheduler_of(asked).feasible_rows(asked, snapshot, expired)

    def scheduler_of(self, asked: PodSignature) -> Scheduler:
        """Return the scheduler that predicts for a pod with the signature `asked`."""
        name = asked.info.nomination.scheduler_name
        found = self.by_name.get(name)
        if found is not None:
            return found
        if self.unlisted is None or name == DEFAULT_SCHEDULER or name in listed_schedulers(self.unlisted.spec):
            return self.default
        return self.unlisted.scheduler
