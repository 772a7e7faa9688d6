"""The pages of the console that have endpoints of their own, in the order of their tabs."""

from collections.abc import Callable, Sequence

from webhook.cli.console.endpoint import Endpoint
from webhook.cli.console.pages import admissions, cluster, manifests, pending, policies
from webhook.cli.console.sources import Sources

PAGES: tuple[Callable[[Sources], Sequence[Endpoint]], ...] = (
    cluster.endpoints,
    pending.endpoints,
    manifests.endpoints,
    admissions.endpoints,
    policies.endpoints,
)
