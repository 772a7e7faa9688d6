"""Plan the next action on certificates, and carry it out in memory. Pure: files, settings and time are passed in.

A command writes everything at once (`plan_at_once`):

    no files, or a replacement is requested ───► ISSUE   a new CA and a server certificate
    not issued here, or not readable ──────────► REFUSE  an administrator has to decide
    valid, right names, far from expiry ───────► KEEP
    otherwise, if no CA key is kept ───────────► ISSUE
    otherwise, if CA and CA key are valid ─────► RENEW   a server certificate of the same CA
    otherwise ─────────────────────────────────► REFUSE

The certs controller proceeds step by step (`plan`), because replicas and API servers read a change with a delay.
docs/certificates.md describes the states Keep, NextCAAdded and Switched, and the steps between them.

If there is neither a Secret nor a trusted CA, AddNextCA also issues the server certificate, because no API server calls
yet.

In every state, each caBundle has the CAs of the Secret and its previous CAs, so a certificate that a replica may serve
stays trusted. Only DropOldCA removes a CA, after every replica serves a certificate of the new CA. IssueServing and
SwitchToNextCA wait until API servers trust the signing CA, also after a caBundle was edited.

The states are not stored but derived from the Secret: `ca.crt` has all CAs, `ca.key` the key of the newest CA, and
`tls.crt` is issued by one of the CAs. So a step can be repeated, or be interrupted at any point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509

from certs import pem
from certs.inspection import (
    CA_CERTIFICATE,
    CA_KEY,
    CERTIFICATE,
    FILES,
    Artifacts,
    Certificates,
    Fault,
    Inspection,
    KeyMaterial,
    due_at,
    inspect,
    read_key_material,
    unexpired,
)
from certs.names import ServerNames
from certs.pki import CA_VALIDITY, SERVER_VALIDITY, KeyPair, issue_ca, issue_server
from webhook.documents.field import FieldError, InvalidInput, forbidden

MOST_CAS = 16
"""The most CAs in the Secret and in a caBundle: etcd bounds both objects, and each rotation adds one."""

_NOW = timedelta(0)
_IN_ORDER = ("everything is in order",)


class Request(StrEnum):
    """The rotations that `certs rotate` requests."""

    SERVING = "serving"
    CA = "ca"


class Action(StrEnum):
    """The actions on the files of a directory or Secret. Commands use the first three, the controller the last four."""

    ISSUE = "issue"
    RENEW = "renew"
    REFUSE = "refuse"
    KEEP = "keep"
    ISSUE_SERVING = "issue_serving"
    ADD_NEXT_CA = "add_next_ca"
    SWITCH_TO_NEXT_CA = "switch_to_next_ca"
    DROP_OLD_CA = "drop_old_ca"


STEPS_OF_A_ROTATION = (Action.ISSUE_SERVING, Action.ADD_NEXT_CA, Action.SWITCH_TO_NEXT_CA, Action.DROP_OLD_CA)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings for the life cycle of certificates.

    `trust_wait` is the time within which API servers read a changed caBundle. `propagation_wait` is the time after
    which every replica serves the pair in the Secret, unless it cannot reload it.
    """

    names: ServerNames
    ca_validity: timedelta = CA_VALIDITY
    server_validity: timedelta = SERVER_VALIDITY
    trust_wait: timedelta = timedelta(seconds=15)
    propagation_wait: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Observed:
    """The Secret and the webhook configurations, as read from the API server.

    `artifacts` is the content of the Secret, or empty if there is no Secret. `bundles` are the readable certificates of
    the caBundle of each webhook. `trusted_for` is, by CA, the uninterrupted time for which every caBundle has had the
    CA; a CA that any caBundle lacks has no entry. `unchanged_for` is the time since the last change of the Secret.
    """

    artifacts: Artifacts
    bundles: tuple[Certificates, ...] = ()
    trusted_for: Mapping[x509.Certificate, timedelta] | None = None
    unchanged_for: timedelta = timedelta(0)
    requested: Request | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The next action with its reasons, which is carried out after `wait`.

    For KEEP, `wait` ends when a certificate is due.

    `ca_bundle` are the CAs to write to each caBundle before the action, or empty if no CA is known or the step is for a
    command. Only the action REFUSE has `obstacles`.
    """

    action: Action
    reasons: tuple[str, ...]
    wait: timedelta = _NOW
    ca_bundle: Certificates = ()
    obstacles: tuple[FieldError, ...] = ()

    @property
    def is_due(self) -> bool:
        """Return whether the files must be changed now."""
        return self.action not in (Action.KEEP, Action.REFUSE) and self.wait <= _NOW

    def check(self, remedy: str, place: str = "") -> None:
        """Raise InvalidInput if there are obstacles. The errors name `place` and the `remedy`."""
        if self.obstacles:
            errors = (replace(each, detail=f"{each.detail}; {remedy}") for each in self.obstacles)
            raise InvalidInput(each.prefixed(place) if place else each for each in errors)


def plan_at_once(
    found: Inspection,
    now: datetime,
    *,
    names: ServerNames | None = None,
    replacing: bool = False,
    ca_key_kept: bool = True,
) -> Step:
    """Return the action after which the files are valid for `names` (None means their current names) for some time.

    `replacing` requests new files even if the present ones are valid. `ca_key_kept` is true if the key of the CA is
    stored with the files, as in a directory, and false for a Secret of `certs register`. Without the key, a due
    certificate is replaced together with its CA.
    """
    if not found.artifacts or replacing:
        return Step(Action.ISSUE, ("a replacement was asked for" if found.artifacts else "nothing there yet",))
    if obstacles := _not_issued_here(found):
        return Step(Action.REFUSE, (), obstacles=obstacles)
    is_named = names is None or (names.includes(found.names) and found.names.includes(names))
    reasons = [*map(str, found.serving_errors()), *_reasons_to_renew(found, now, None if is_named else names)]
    if not reasons:
        return Step(Action.KEEP, _IN_ORDER)
    if not ca_key_kept:
        return Step(Action.ISSUE, tuple(reasons))
    obstacles = tuple(problem.error for problem in found.faults(CA_CERTIFICATE, CA_KEY))
    return Step(Action.REFUSE if obstacles else Action.RENEW, tuple(reasons), obstacles=obstacles)


def _not_issued_here(found: Inspection) -> tuple[FieldError, ...]:
    """Return why the files must not be overwritten: they are unreadable, or another CA issued the certificate."""
    held = found.artifacts
    if not held.ca_certificate:
        present = next(file for file, content in zip(FILES, held, strict=True) if content)
        return (forbidden(present, f"is there without {CA_CERTIFICATE}, so it was not issued here"),)
    foreign = (each for each in found.problems if each.fault in (Fault.UNREADABLE, Fault.FOREIGN))
    return tuple(each.error for each in foreign if each.file != CA_KEY)


def _reasons_to_renew(found: Inspection, now: datetime, names: ServerNames | None) -> Iterator[str]:
    """Yield the reasons to replace a readable server certificate: it is not for `names`, if given, or it is due."""
    server = found.server
    if server is not None and names is not None:
        yield f"{CERTIFICATE} is for {found.names}, not for {names}"
    if server is not None and due_at(server) <= now < server.not_valid_after_utc:
        days_left = (server.not_valid_after_utc - now).days
        yield f"{CERTIFICATE} has {days_left} days left, less than a third of its time"


def plan(seen: Observed, rules: Rules, now: datetime) -> Step:
    """Return the next step of the certs controller."""
    keys = read_key_material(seen.artifacts, now)
    extra = tuple(ca for bundle in seen.bundles for ca in unexpired(bundle, now))
    used = tuple(dict.fromkeys(ca for ca in (keys.signer, keys.issuer) if ca is not None))
    trusted = _newest((*keys.cas, *extra), first=used)
    signer = keys.signer
    reasons = _reasons_for_a_ca(keys, seen, now)
    if signer is None or reasons:
        return Step(Action.ADD_NEXT_CA, reasons, _NOW, trusted)
    reasons = _reasons_for_a_certificate(keys, seen, rules, now)
    if reasons:
        switches = keys.issuer != signer and any(ca != signer for ca in keys.cas)
        action = Action.SWITCH_TO_NEXT_CA if switches else Action.ISSUE_SERVING
        return Step(action, reasons, _trust_wait(signer, seen, rules), trusted)
    if any(ca != signer for ca in trusted):
        wait = max(rules.propagation_wait - seen.unchanged_for, _NOW)
        reasons = ("no replica serves a certificate of another CA any more",)
        return Step(Action.DROP_OLD_CA, reasons, wait, (signer,) if wait <= _NOW else trusted)
    ends = [due_at(each) for each in (signer, keys.pair.server) if each is not None]
    return Step(Action.KEEP, _IN_ORDER, max(min(ends) - now, _NOW), trusted)


def _reasons_for_a_ca(keys: KeyMaterial, seen: Observed, now: datetime) -> tuple[str, ...]:
    if not keys.cas:
        return ("there is no CA yet",)
    if keys.signer is None:
        return ("ca.key has the key of no valid CA",)
    reasons = []
    if now >= due_at(keys.signer):
        reasons.append(f"the CA has {(keys.signer.not_valid_after_utc - now).days} days left, a third of its time")
    if seen.requested is Request.CA and keys.issuer in (keys.signer, None):
        reasons.append("a rotation of the CA was requested")
    return tuple(reasons)


def _reasons_for_a_certificate(keys: KeyMaterial, seen: Observed, rules: Rules, now: datetime) -> tuple[str, ...]:
    pair = keys.pair
    if keys.issuer is None:
        return tuple(str(error) for error in pair.serving_errors())
    reasons = ["tls.crt is issued by the old CA"] if keys.issuer != keys.signer else []
    reasons += _reasons_to_renew(pair, now, None if pair.names.includes(rules.names) else rules.names)
    if seen.requested is Request.SERVING:
        reasons.append("a rotation was requested")
    return tuple(reasons)


def _trust_wait(signer: x509.Certificate, seen: Observed, rules: Rules) -> timedelta:
    """Return the time until API servers trust `signer`.

    It is zero without webhooks, because no API server calls then.
    """
    if not seen.bundles:
        return _NOW
    return max(rules.trust_wait - (seen.trusted_for or {}).get(signer, _NOW), _NOW)


def _newest(certificates: Certificates, first: Certificates = ()) -> Certificates:
    """Return `first`, then the newest of the other `certificates`, up to `MOST_CAS` in total."""
    others = [each for each in dict.fromkeys(certificates) if each not in first]
    room = max(MOST_CAS - len(first), 0)
    kept = set(sorted(others, key=lambda each: each.not_valid_before_utc, reverse=True)[:room])
    return (*first, *(each for each in others if each in kept))


def fulfils(step: Step, requested: Request | None) -> bool:
    """Return whether `step` completes or begins the requested rotation."""
    issuing = (Action.ISSUE_SERVING, Action.SWITCH_TO_NEXT_CA)
    return step.action in {Request.CA: (Action.ADD_NEXT_CA,), Request.SERVING: issuing, None: ()}[requested]


def carried_out(step: Step, held: Artifacts, rules: Rules, now: datetime) -> Artifacts:
    """Return the files after the action of `step`, which must have been planned for `held`.

    Raises:
        InvalidInput: `rules` has no names.
    """
    # The first Secret is written whole: the volumes of the pods that wait for it name its keys.
    if step.action is Action.ISSUE or not (held or step.ca_bundle):
        ca = issue_ca(now=now, validity=rules.ca_validity)
        return _with_pair(Artifacts(ca.certificate, ca.key), ca, (rules.names,), rules, now)
    if step.action is Action.RENEW:
        ca = KeyPair(pem.encode(*filter(None, [inspect(held, now).ca])), held.ca_key or b"")
        return _with_pair(held, ca, (rules.names,), rules, now)
    keys = read_key_material(held, now)
    if step.action is Action.ADD_NEXT_CA:
        ca = issue_ca(now=now, validity=rules.ca_validity)
        first = (*pem.certificates(ca.certificate, CA_CERTIFICATE), *((keys.issuer,) if keys.issuer else ()))
        return replace(held, ca_certificate=pem.encode(*_newest(step.ca_bundle, first=first)), ca_key=ca.key)
    if keys.signer is None or step.action in (Action.KEEP, Action.REFUSE):
        return held
    if step.action is Action.DROP_OLD_CA:
        return replace(held, ca_certificate=pem.encode(keys.signer))
    ca = KeyPair(pem.encode(keys.signer), held.ca_key or b"")
    cas = replace(held, ca_certificate=pem.encode(*_newest(keys.cas, first=(keys.signer,))))
    # The names of the present certificate stay, because API servers may call them.
    names = (rules.names,) if keys.issuer is None else (rules.names, keys.pair.names)
    return _with_pair(cas, ca, names, rules, now)


def _with_pair(held: Artifacts, ca: KeyPair, names: tuple[ServerNames, ...], rules: Rules, now: datetime) -> Artifacts:
    """Return the files with a new server certificate for all `names`, issued by `ca`."""
    dns_names = [name for each in names for name in each.dns_names]
    addresses = [str(address) for each in names for address in each.ip_addresses]
    server = issue_server(ca, dns_names=dns_names, ip_addresses=addresses, now=now, validity=rules.server_validity)
    return replace(held, certificate=server.certificate, key=server.key)
