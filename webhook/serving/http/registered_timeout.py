"""The time that the API server waits for the webhook, as it is registered."""

from collections.abc import Mapping
from typing import Any

# The longest timeoutSeconds of a webhook, and the default.
# Source: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go, v1/defaults.go
_LONGEST_SECONDS = 30.0
_DEFAULT_SECONDS = 10.0


class RegisteredTimeout:
    """The longest timeout of the registered webhooks in `seconds`; 30 while the configuration is not known.

    A client states its own timeout in the URL. If that one counted, a client that is no API server could keep its
    requests in the queue for longer than others.
    """

    def __init__(self) -> None:
        self.seconds = _LONGEST_SECONDS

    def follow(self, configuration: Mapping[str, Any] | None) -> None:
        """Take over the timeouts of a MutatingWebhookConfiguration, a raw API object of any shape."""
        webhooks = (configuration or {}).get("webhooks")
        found = [
            each.get("timeoutSeconds", _DEFAULT_SECONDS)
            for each in (webhooks if isinstance(webhooks, list) else ())
            if isinstance(each, Mapping)
        ]
        valid = [float(each) for each in found if isinstance(each, int | float) and 0 < each <= _LONGEST_SECONDS]
        self.seconds = max(valid, default=_LONGEST_SECONDS)
