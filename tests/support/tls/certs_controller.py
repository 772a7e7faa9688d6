"""The certs controller, run in a thread, and what it keeps in a cluster."""

import asyncio
import base64
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from cryptography import x509

from certs import pem
from certs.controller.admin import ACTIONS, ControllerMetrics
from certs.controller.loop import Controller
from certs.controller.reconciler import Options
from certs.inspection import KeyMaterial, read_key_material
from certs.names import server_names, service_names
from certs.plan import Rules
from certs.registration import Target, ca_bundles
from certs.secret import artifacts_in
from tests.controlplane.client import NotFound
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION
from tests.support.servers.server import connections_gone, utc_now
from tests.support.servers.threads import event_loop_in_thread
from webhook.runtime.settings import Address
from webhook.watch.api_server import ClientConfig

Object = dict[str, Any]

CONFIGURATION = "00-placement-webhook"
TRUST_WAIT, PROPAGATION_WAIT = timedelta(seconds=0.3), timedelta(seconds=0.6)


@dataclass(frozen=True, slots=True)
class Running:
    """A running controller: its metrics, and the address of its admin port."""

    admin: Address
    metrics: ControllerMetrics

    def readiness(self) -> tuple[int, str]:
        """Return status and text of `/readyz`."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}/readyz", timeout=10) as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def count(self, action: str, result: str = "done") -> float:
        """Return how often an action had a result."""
        name = "placement_webhook_certs_controller_actions_total"
        return self.metrics.registry.get_sample_value(name, {"action": action, "result": result}) or 0.0

    def changes(self) -> float:
        """Return the number of all changes that were made."""
        return sum(self.count(action) for action in ACTIONS)

    def wait_ready(self) -> None:
        """Return once a pass is complete and nothing fails."""
        wait_for(lambda: self.readiness()[0] == 200, lambda: self.readiness()[1])


@contextmanager
def controlling(kubeconfig: Path, options: Options, *, resync_seconds: float = 3600.0) -> Iterator[Running]:
    """Run a controller until the block ends. By default only watches and due steps wake it."""
    metrics = ControllerMetrics()

    async def control(started: Callable[[Address], None], stop: asyncio.Event) -> None:
        connect = ClientConfig(kubeconfig).connect
        controller = Controller(options, connect, metrics, resync_seconds=resync_seconds, random_share=lambda: 0.0)
        await controller.run(stop, Address("127.0.0.1", 0), started)
        await connections_gone()

    with event_loop_in_thread("certs controller", control) as address:
        yield Running(address, metrics)


@dataclass(frozen=True, slots=True)
class Installation:
    """The Secret and the webhook configuration in a cluster."""

    cluster: Cluster
    namespace: str

    @property
    def target(self) -> Target:
        """The names of the objects."""
        return Target(self.namespace, configuration=CONFIGURATION)

    def options(self, instance: str = "one", **changes: Any) -> Options:
        """Return the settings of a controller, with short times."""
        names = server_names(service_names(self.target.service, self.namespace))
        rules = Rules(names, trust_wait=TRUST_WAIT, propagation_wait=PROPAGATION_WAIT)
        given: dict[str, Any] = {"target": self.target, "configurations": (CONFIGURATION,), "rules": rules}
        return Options(**given | changes, instance=instance)

    def secret(self) -> Object | None:
        """Return the Secret, if there is one."""
        with suppress(NotFound):
            return self.cluster.client.get("Secret", self.target.secret, self.namespace)
        return None

    def key_material(self) -> KeyMaterial:
        """Return what the Secret has."""
        return read_key_material(artifacts_in(self.secret()), utc_now())

    def configuration(self) -> Object | None:
        """Return the webhook configuration, if there is one."""
        with suppress(NotFound):
            return self.cluster.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
        return None

    def bundles(self) -> list[set[x509.Certificate]]:
        """Return the CAs that each webhook trusts."""
        return [set(pem.readable_certificates(each)) for each in ca_bundles(self.configuration() or {})]

    def is_steady(self) -> bool:
        """Return whether one CA signs, is served and is trusted, and no other."""
        keys, bundles = self.key_material(), self.bundles()
        return (
            keys.signer is not None
            and keys.issuer == keys.signer
            and set(keys.cas) == {keys.signer}
            and all(each == {keys.signer} for each in bundles)
        )

    def wait_steady(self) -> KeyMaterial:
        """Return what the Secret has once the certificates are in order."""
        wait_for(self.is_steady, lambda: f"one CA: {self.key_material()}, {self.bundles()}")
        return self.key_material()

    def patch_configuration(self, operations: list[Object]) -> None:
        """Change the webhook configuration as another client."""
        self.cluster.client.patch("MutatingWebhookConfiguration", CONFIGURATION, operations, api_version=ADMISSION)

    def patch_secret(self, patch: Object) -> None:
        """Change the Secret as another client."""
        self.cluster.client.patch("Secret", self.target.secret, patch, namespace=self.namespace)


def encoded(*cas: x509.Certificate) -> str:
    """Return the value of a caBundle field."""
    return base64.b64encode(pem.encode(*cas)).decode()
