"""The settings of the certs controller."""

from dataclasses import dataclass
from urllib.parse import quote

from certs.registration import Target
from certs.rotation.state import Rules
from certs.webhook_rules import Coverage

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass(frozen=True, slots=True)
class Watched:
    """An object that the controller watches: its collection and its name."""

    collection: str
    name: str

    @property
    def path(self) -> str:
        """Return the path of the object."""
        return f"{self.collection}/{quote(self.name, safe='')}"


@dataclass(frozen=True, slots=True)
class Options:
    """The objects that the controller keeps in order, and how.

    `target` has the Secret and the address of the webhook. `configurations` are the names of the webhook configurations
    whose caBundles are maintained. `creates`: the first one is created once the server is trusted, for the objects of
    `coverage` (None: those of the built-in policy), and gets the webhooks that it lacks. `probe_at` is the HOST:PORT to
    probe in place of that of the webhook. `instance` is the name of this controller, unique among those of one Secret.
    """

    target: Target
    configurations: tuple[str, ...]
    rules: Rules
    instance: str
    creates: bool = False
    coverage: Coverage | None = None
    probe_at: str | None = None

    @property
    def secret(self) -> Watched:
        """Return the Secret."""
        return Watched(f"/api/v1/namespaces/{quote(self.target.namespace, safe='')}/secrets", self.target.secret)

    @property
    def watched(self) -> tuple[Watched, ...]:
        """Return all objects of the controller."""
        return (self.secret, *(Watched(_CONFIGURATIONS, name) for name in self.configurations))

    @property
    def place(self) -> str:
        """Return the name of the Secret for messages."""
        return f"Secret {self.target.namespace}/{self.target.secret}"
