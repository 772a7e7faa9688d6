"""The pages of the console that have endpoints of their own, in the order of their tabs."""

from collections.abc import Callable, Sequence

from webhook.cli.console.page import Endpoint, Sources
from webhook.cli.console.pages import admissions, cluster, manifests, pending, policies

PAGES: tuple[Callable[[Sources], Sequence[Endpoint]], ...] = (
    cluster.endpoints,
    pending.endpoints,
    manifests.endpoints,
    admissions.endpoints,
    policies.endpoints,
)
