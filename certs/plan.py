"""What to do now about certificates, given what there is and the time. Pure.

nothing there, or a replacement asked for ─► ISSUE   a new CA and a server certificate
not issued here, or not readable ──────────► REFUSE  somebody has to decide
in order, right names, far from expiry ────► KEEP
otherwise, where no CA key is ever kept ───► ISSUE
otherwise, the CA and its key in order ────► RENEW   a server certificate of the same CA
otherwise ─────────────────────────────────► REFUSE
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from cryptography import x509

from certs.inspection import CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY, Fault, Inspection, Problem
from certs.names import ServerNames
from webhook.kube.field import FieldError, forbidden

# Source: https://cert-manager.io/docs/usage/certificate/#issuance-triggers: renewed when a third of its time is left
_RENEWAL_FRACTION = 3


class Action(Enum):
    """What there is to do."""

    ISSUE = "issue"
    RENEW = "renew"
    KEEP = "keep"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Plan:
    """One action and why; `obstacles` only where the action is REFUSE."""

    action: Action
    reasons: tuple[str, ...]
    obstacles: tuple[FieldError, ...] = ()


def plan(
    found: Inspection,
    now: datetime,
    *,
    names: ServerNames | None = None,
    replace: bool = False,
    ca_key_kept: bool = True,
) -> Plan:
    """What to do so that the files serve `names` (None: whatever they are for) now and for a while.

    `replace` asks for new ones whatever is there. `ca_key_kept` says that the place keeps its CA's key, as a
    directory does and the cluster's Secret does not: without, a due certificate is replaced together with its CA.
    """
    if not found.artifacts:
        return Plan(Action.ISSUE, ("nothing there yet",))
    if replace:
        return Plan(Action.ISSUE, ("a replacement was asked for",))
    foreign = _foreign(found)
    if foreign:
        return Plan(Action.REFUSE, (), foreign)
    reasons = _reasons_to_renew(found, now, names)
    if not reasons:
        return Plan(Action.KEEP, ("everything is in order",))
    if not ca_key_kept:
        return Plan(Action.ISSUE, reasons)
    obstacles = tuple(problem.error for problem in found.faults(CA_CERTIFICATE, CA_KEY))
    if obstacles:
        return Plan(Action.REFUSE, reasons, obstacles)
    return Plan(Action.RENEW, reasons)


def due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether less than a third of the certificate's time is left."""
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < lifetime / _RENEWAL_FRACTION


def _foreign(found: Inspection) -> tuple[FieldError, ...]:
    """Why the files are nobody's to overwrite: they cannot be read, or another CA issued the server certificate."""
    if found.artifacts.ca_certificate is None:
        held = (CA_KEY, found.artifacts.ca_key), (CERTIFICATE, found.artifacts.certificate), (KEY, found.artifacts.key)
        present = [file for file, content in held if content is not None]
        return (forbidden(present[0], f"is there without {CA_CERTIFICATE}, so it was not issued here"),)
    return tuple(problem.error for problem in found.problems if _is_foreign(problem))


def _is_foreign(problem: Problem) -> bool:
    return problem.fault in (Fault.UNREADABLE, Fault.FOREIGN) and problem.file != CA_KEY


def _reasons_to_renew(found: Inspection, now: datetime, names: ServerNames | None) -> tuple[str, ...]:
    reasons = [str(problem.error) for problem in found.faults(CA_CERTIFICATE, CERTIFICATE, KEY)]
    if found.server is None:
        return tuple(reasons)
    if names and not names.same_as(found.names):
        reasons.append(f"{CERTIFICATE} is for {found.names}, not for {names}")
    if now < found.server.not_valid_after_utc and due(found.server, now):
        days_left = (found.server.not_valid_after_utc - now).days
        reasons.append(f"{CERTIFICATE} has {days_left} days left, less than a third of its time")
    return tuple(reasons)
