"""The page Pending: the pods that wait, why, and what would make room for them."""

from collections.abc import Sequence

from webhook.cli.console.endpoint import Asked, Endpoint, reported_once
from webhook.cli.console.sources import Sources


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoints of the page."""

    def pending(_: Asked) -> object:
        return {"pods": len(sources.view.snapshot().pending)}

    return (Endpoint("/api/pending", pending, reported=reported_once),)
