"""The Prometheus metrics of the certs controller."""

from datetime import datetime

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from certs.rotation.plan import Action

MEND = "mend_ca_bundle"
CREATE = "create_configuration"
ACTIONS = (*(str(action) for action in Action if action is not Action.KEEP), MEND, CREATE)
RESULTS = ("done", "conflict", "failed")


class ControllerMetrics:
    """The metrics of one controller, in their own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
        self.registry = registry = CollectorRegistry()
        self.actions = Counter(
            "placement_webhook_certs_controller_actions",
            "Changes of the Secret and the webhook configurations, by action and result.",
            ("action", "result"),
            registry=registry,
        )
        for action in ACTIONS:
            for result in RESULTS:
                self.actions.labels(action, result)
        self.failures = Counter(
            "placement_webhook_certs_controller_failures",
            "Attempts to compare the certificates with the cluster that failed; the log has the reason.",
            registry=registry,
        )
        self.rotating = Gauge(
            "placement_webhook_certs_controller_rotation_in_progress",
            "1 while the next action is not to keep the certificates.",
            registry=registry,
        )
        self.ca_not_after = Gauge(
            "placement_webhook_ca_not_after_timestamp_seconds",
            "Expiry time of the CA that signs; 0 if there is none.",
            registry=registry,
        )
        self.certificate_not_after = Gauge(
            "placement_webhook_certs_controller_certificate_not_after_timestamp_seconds",
            "Expiry time of the server certificate in the Secret; 0 if there is none.",
            registry=registry,
        )

    def show_ends(self, ca: datetime | None, certificate: datetime | None) -> None:
        """Export these times of expiry."""
        self.ca_not_after.set(ca.timestamp() if ca else 0)
        self.certificate_not_after.set(certificate.timestamp() if certificate else 0)

    def show_process(self) -> None:
        """Add metrics of the process."""
        ProcessCollector(registry=self.registry)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
