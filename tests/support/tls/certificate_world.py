"""A model of an installation: the Secret, the caBundles, replicas and API servers that lag, and several controllers.

Replicas may serve any pair that the Secret had within the propagation time, and API servers may act on any caBundle of
the trust time. A controller reads at one time and writes at another; a write fails if the object has changed meanwhile.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.x509 import verification

from certs import pem
from certs.controller.reconciler import Memory
from certs.inspection import Artifacts, Certificates, read_key_material
from certs.names import server_names
from certs.plan import Action, Observed, Request, Rules, Step, carried_out, fulfils, plan
from tests.support.tls.certificates import NOW
from webhook.documents.field import InvalidInput

RULES = Rules(server_names(["placement-webhook.placement-webhook.svc"]))
Bundles = tuple[Certificates, ...]


@dataclass(frozen=True)
class Stored:
    """One version of the Secret; `artifacts` None: there is none."""

    version: int
    artifacts: Artifacts | None
    requested: Request | None = None


@dataclass
class Controller:
    """A controller with its memory, and what it has read and planned but not yet written."""

    memory: Memory = field(default_factory=Memory)
    read: tuple[Stored, int, Step] | None = None


@dataclass
class World:
    """Everything at the time `now`; `broken` describes steps that made a served certificate untrusted."""

    now: datetime = NOW
    secret: Stored = Stored(0, None)
    bundles: Bundles = ()
    bundle_version: int = 0
    controllers: tuple[Controller, ...] = field(default_factory=lambda: (Controller(), Controller()))
    secrets_were: list[Stored] = field(default_factory=list)
    pairs_were: list[tuple[datetime, x509.Certificate]] = field(default_factory=list)
    bundles_were: list[tuple[datetime, Bundles, bool]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def store(self, artifacts: Artifacts | None, requested: Request | None = None) -> None:
        """Write the Secret."""
        self.secret = Stored(self.secret.version + 1, artifacts, requested)
        self.secrets_were.append(self.secret)
        if (pair := _pair(artifacts)) is not None:
            self.pairs_were.append((self.now, pair))

    def trust(self, bundles: Bundles, *, by_controller: bool) -> None:
        """Write the webhook configuration."""
        self.bundles, self.bundle_version = bundles, self.bundle_version + 1
        self.bundles_were.append((self.now, bundles, by_controller))

    def look(self, controller: Controller) -> Step:
        """Read both objects, and plan."""
        seconds = (self.now - NOW).total_seconds()
        seen = Observed(
            self.secret.artifacts or Artifacts(),
            self.bundles,
            controller.memory.trusted_for(self.bundles, seconds),
            controller.memory.unchanged_for(str(self.secret.version), seconds),
            self.secret.requested,
        )
        step = plan(seen, RULES, self.now)
        controller.read = (self.secret, self.bundle_version, step)
        return step

    def write(self, controller: Controller) -> None:
        """Write what was planned at the last read, as a compare-and-swap."""
        if controller.read is None:
            return
        (secret, bundle_version, step), controller.read = controller.read, None
        trusted_before = self.trusted()
        if self.bundles and step.ca_bundle and bundle_version == self.bundle_version:
            wanted = tuple(step.ca_bundle for _ in self.bundles)
            if [set(each) for each in wanted] != [set(each) for each in self.bundles]:
                self.trust(wanted, by_controller=True)
        if step.is_due and secret == self.secret:
            held = secret.artifacts or Artifacts()
            self._check_readers(step, held)
            after = carried_out(step, held, RULES, self.now)
            request = None if fulfils(step, secret.requested) else secret.requested
            if after != held or request != secret.requested:
                self.store(after, request)
        if lost := trusted_before - self.trusted():
            self.broken.append(f"{step.action}: {len(lost)} served certificates are not trusted any more")

    def _check_readers(self, step: Step, held: Artifacts) -> None:
        """Note a new pair whose CA an API server that lags may not know yet."""
        if step.action not in (Action.ISSUE_SERVING, Action.SWITCH_TO_NEXT_CA):
            return
        signer = read_key_material(held, self.now).signer
        if any(signer not in bundle for bundles in self.acted_on() for bundle in bundles):
            self.broken.append(f"{step.action}: an API server may not know the CA yet")

    def acted_on(self) -> list[Bundles]:
        """Return the caBundles on which an API server may act now, but for those that a fault has made."""
        since = self.now - RULES.trust_wait
        before = [bundles for at, bundles, ours in self.bundles_were if at <= since][-1:]
        return [*before, *(bundles for at, bundles, ours in self.bundles_were if at > since and ours), self.bundles]

    def served(self) -> list[x509.Certificate]:
        """Return the certificates that a replica may serve now: a pair that cannot be served is not loaded."""
        since = self.now - RULES.propagation_wait
        return [pair for at, pair in self.pairs_were if at <= since][-1:] + [
            pair for at, pair in self.pairs_were if at > since
        ]

    def trusted(self) -> set[x509.Certificate]:
        """Return the served certificates that have not expired and are trusted by every caBundle."""
        served = [each for each in self.served() if self.now < each.not_valid_after_utc]
        return {each for each in served if all(_trusts(bundle, each, self.now) for bundle in self.bundles)}

    def settle(self) -> Step:
        """Let one controller work until it has nothing to do; return its last step."""
        step = self.look(self.controllers[0])
        for _ in range(60):
            self.write(self.controllers[0])
            step = self.look(self.controllers[0])
            if step.action is Action.KEEP and self.trusts(step.ca_bundle):
                return step
            self.now += timedelta(0) if step.action is Action.KEEP else step.wait
        return step

    def trusts(self, wanted: Certificates) -> bool:
        """Return whether each caBundle has exactly these CAs."""
        return all(set(bundle) == set(wanted) for bundle in self.bundles)


def _pair(artifacts: Artifacts | None) -> x509.Certificate | None:
    """Return the certificate, unless no server would load it."""
    held = artifacts or Artifacts()
    try:
        certificate = pem.certificates(held.certificate or b"", "tls.crt")[0]
        key = pem.private_key(held.key or b"", "tls.key")
    except InvalidInput:
        return None
    return certificate if key.public_key() == certificate.public_key() else None


def _trusts(bundle: Certificates, certificate: x509.Certificate, at: datetime) -> bool:
    if not bundle:
        return False
    builder = verification.PolicyBuilder().store(verification.Store(list(bundle))).time(at)
    verifier = builder.build_server_verifier(x509.DNSName(RULES.names.dns_names[0]))
    try:
        verifier.verify(certificate, [])
    except verification.VerificationError:
        return False
    return True
