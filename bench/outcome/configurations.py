"""The configurations that a replay compares."""

from collections.abc import Callable
from typing import NamedTuple

from bench.clusters import DOMAIN
from bench.outcome.arrivals import Object, Shape, TracePod
from bench.outcome.fragmentation import Policy, fgd, fgd_exact, scarcity
from webhook.placement.profile import BINPACK, DEFAULT, PACK_GPUS, Profile


class Configuration(NamedTuple):
    """The hint of the webhook, and the scheduler of the pods.

    `scheduler` is the profile that the pods choose in the real kube-scheduler, None if it is only simulated.
    `profile` is its model in the simulation; `policy`, if there is one, replaces it there.
    """

    name: str
    scheduler: str | None
    profile: Profile = DEFAULT
    hint: bool = False
    policy: Callable[[tuple[Shape, ...]], Policy] | None = None

    def pod(self, pod: TracePod) -> Object:
        """Return the pod as its user creates it."""
        builder = pod.builder.annotate(f"{DOMAIN}/bin-packing", "true" if self.hint else "false")
        if self.scheduler not in (None, "default-scheduler"):
            builder = builder.annotate(f"{DOMAIN}/scheduler", self.scheduler)
        return builder.obj()


CONFIGURATIONS = (
    Configuration("stock", "default-scheduler"),
    Configuration("hint", "default-scheduler", hint=True),
    Configuration("profile", "binpack-scheduler", BINPACK),
    Configuration("both", "binpack-scheduler", BINPACK, hint=True),
    Configuration("PackGpus", None, PACK_GPUS),
    Configuration("FGD", None, policy=fgd),
    Configuration("FGD, exact", None, policy=fgd_exact),
    Configuration("scarcity", None, policy=scarcity),
)
