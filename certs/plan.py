"""Decide what to do with certificates, from the existing files and the time. Pure.

no files, or a replacement is requested ───► ISSUE   a new CA and a server certificate
not issued here, or not readable ──────────► REFUSE  an administrator has to decide
valid, right names, far from expiry ───────► KEEP
otherwise, if no CA key is kept ───────────► ISSUE
otherwise, if CA and CA key are valid ─────► RENEW   a server certificate of the same CA
otherwise ─────────────────────────────────► REFUSE
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from cryptography import x509

from certs.inspection import CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY, Fault, Inspection, Problem
from certs.names import ServerNames
from webhook.kube.field import FieldError, forbidden

# Source: https://cert-manager.io/docs/usage/certificate/#issuance-triggers: renew when a third of the lifetime is left
_RENEWAL_FRACTION = 3


class Action(Enum):
    """The actions of a plan."""

    ISSUE = "issue"
    RENEW = "renew"
    KEEP = "keep"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Plan:
    """An action with its reasons; only the action REFUSE has `obstacles`."""

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
    """Return the action after which the files serve `names` (None: their present names) now and for some time.

    `replace` requests new files in any case. `ca_key_kept`: the place keeps the key of its CA, as a directory does and
    the cluster's Secret does not. Without the key, a due certificate is replaced together with its CA.
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
    """Return whether less than a third of the certificate's lifetime is left."""
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < lifetime / _RENEWAL_FRACTION


def _foreign(found: Inspection) -> tuple[FieldError, ...]:
    """Return why the files must not be overwritten: they cannot be read, or another CA issued the certificate."""
    if not found.artifacts.ca_certificate:
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
