"""The registry of the backends."""

from collections.abc import Mapping

from webhook.backends.backend import Backend
from webhook.backends.coscheduling import Coscheduling
from webhook.backends.default import Default
from webhook.backends.kai import Kai
from webhook.backends.kueue import Kueue
from webhook.backends.native import Native
from webhook.backends.volcano import Volcano
from webhook.policy.document import PolicySpec
from webhook.policy.scheduler_settings import settings_of

BACKENDS: Mapping[str, type[Backend]] = {
    each.name: each for each in (Default, Volcano, Kai, Coscheduling, Native, Kueue)
}


def backend_of(spec: PolicySpec, scheduler: str) -> type[Backend]:
    """Return the backend of `scheduler`, which may be a scheduler that the policy does not name."""
    return BACKENDS[settings_of(spec.schedulers, scheduler).backend]


def queueing_backend_of(spec: PolicySpec, scheduler: str) -> type[Backend]:
    """Return the backend that reads queues and gangs of pods of `scheduler`: its own, or Kueue before it."""
    return Kueue if spec.queueing == "kueue" else backend_of(spec, scheduler)
