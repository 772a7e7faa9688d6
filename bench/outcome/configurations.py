"""The configurations that a replay compares."""

from collections.abc import Callable
from typing import NamedTuple

from bench.outcome.arrivals import Object, TracePod
from bench.outcome.fragmentation import Policy, Shape, fgd, fgd_exact
from tests.support.objects.clusters import DOMAIN
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PACK_GPUS, Profile

_PROFILES, _EXTENDER = "kube-scheduler-configuration.yaml", "kube-scheduler-extender.yaml"


class Configuration(NamedTuple):
    """The hint of the webhook, and the scheduler of the pods.

    `file` in deploy/scheduler is the configuration of the real kube-scheduler; empty: it has none. `scheduler` is the
    profile in it that the pods choose, None if the configuration is only simulated. `profile` is its model in the
    simulation, whose `PackGpus` knows the mix of the pod list if `knows_mix`; `policy`, if there is one, replaces it.
    """

    name: str
    scheduler: str | None
    file: str = ""
    profile: Profile = DEFAULT
    hint: bool = False
    knows_mix: bool = False
    policy: Callable[[tuple[Shape, ...]], Policy] | None = None

    @property
    def extender_profile(self) -> str:
        """The profile of the webhook's scheduler extender."""
        return self.profile.name if self.file == _EXTENDER else "none"

    def pod(self, pod: TracePod) -> Object:
        """Return the pod as its user creates it."""
        builder = pod.builder.annotate(f"{DOMAIN}/bin-packing", "true" if self.hint else "false")
        if self.scheduler not in (None, "default-scheduler"):
            builder = builder.annotate(f"{DOMAIN}/scheduler", self.scheduler)
        return builder.obj()


CONFIGURATIONS = (
    Configuration("stock", "default-scheduler"),
    Configuration("hint", "default-scheduler", hint=True),
    Configuration("profile", "binpack-scheduler", _PROFILES, BINPACK),
    Configuration("both", "binpack-scheduler", _PROFILES, BINPACK, hint=True),
    Configuration("PackGpus", "default-scheduler", _EXTENDER, PACK_GPUS),
    Configuration("PackGpus, known mix", None, profile=PACK_GPUS, knows_mix=True),
    Configuration("FGD", None, policy=fgd),
    Configuration("FGD, exact", None, policy=fgd_exact),
)
