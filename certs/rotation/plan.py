"""Decide the next step of the certificate life. Pure: what was observed, the settings and the time are passed in.

                       a CA key is lost, the CA is due, or its rotation is requested
    +-------+ -------------------------------------------------------> +---------------+
    | Keep  |                        AddNextCA                         | NextCAAdded   |
    | (one  |                                                          | (both trusted,|
    |  CA)  | <--+                                                     |  old one      |
    +-------+    | IssueServing: tls.crt is due, damaged, for other    |  served)      |
       ^  |      | names, or its rotation is requested; the CA stays   +---------------+
       |  +------+                                                             |
       |                                                                       | SwitchToNextCA: API servers have
       |                                                                       | trusted the next CA for `trust_wait`
       |                              +---------------+                        |
       |          DropOldCA           | Switched      | <----------------------+
       +----------------------------- | (both trusted,|
          the Secret is unchanged     |  new one      |
          for `propagation_wait`      |  served)      |
                                      +---------------+

In every state, each caBundle has the CAs of the Secret and those that it had, so a certificate that a replica may serve
stays trusted. Only DropOldCA removes a CA, when every replica serves a certificate of the other one. IssueServing and
SwitchToNextCA wait until API servers trust the CA that signs, also after a caBundle was edited.

The states are not stored. They follow from the Secret: `ca.crt` has all CAs, `ca.key` the key of the newest one, and
`tls.crt` is issued by one of them. So a step can be repeated, or be interrupted at any point.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509

from certs.rotation.state import Certificates, Observed, Request, Ring, Rules, due_at, newest, read_ring, unexpired

_NOW = timedelta(0)


class Action(StrEnum):
    """The actions on the Secret."""

    KEEP = "keep"
    ISSUE_SERVING = "issue_serving"
    ADD_NEXT_CA = "add_next_ca"
    SWITCH_TO_NEXT_CA = "switch_to_next_ca"
    DROP_OLD_CA = "drop_old_ca"


@dataclass(frozen=True, slots=True)
class Step:
    """The next action, with its reasons, to be carried out after `wait`; for KEEP, the time until a certificate is due.

    `ca_bundle` are the CAs for each caBundle from now on, before the action; empty: no CA is known.
    """

    action: Action
    reasons: tuple[str, ...]
    wait: timedelta
    ca_bundle: Certificates

    @property
    def is_due(self) -> bool:
        """Return whether the Secret is to be changed now."""
        return self.action is not Action.KEEP and self.wait <= _NOW


def plan(seen: Observed, rules: Rules, now: datetime) -> Step:
    """Return the next step of the certificate life."""
    ring = read_ring(seen.artifacts, now)
    extra = tuple(ca for bundle in seen.bundles for ca in unexpired(bundle, now))
    trusted = newest((*ring.cas, *extra), first=_used(ring))
    signer = ring.signer
    reasons = _reasons_for_a_ca(ring, seen, now)
    if signer is None or reasons:
        return Step(Action.ADD_NEXT_CA, reasons, _NOW, trusted)
    reasons = _reasons_for_a_certificate(ring, signer, seen, rules, now)
    if reasons:
        switches = ring.issuer != signer and any(ca != signer for ca in ring.cas)
        action = Action.SWITCH_TO_NEXT_CA if switches else Action.ISSUE_SERVING
        return Step(action, reasons, _trust_wait(signer, seen, rules), trusted)
    if any(ca != signer for ca in trusted):
        wait = max(rules.propagation_wait - seen.unchanged_for, _NOW)
        reasons = ("no replica serves a certificate of another CA any more",)
        return Step(Action.DROP_OLD_CA, reasons, wait, (signer,) if wait <= _NOW else trusted)
    ends = [due_at(each) for each in (signer, ring.pair.server) if each is not None]
    return Step(Action.KEEP, ("everything is in order",), max(min(ends) - now, _NOW), trusted)


def _used(ring: Ring) -> Certificates:
    return tuple(dict.fromkeys(ca for ca in (ring.signer, ring.issuer) if ca is not None))


def _reasons_for_a_ca(ring: Ring, seen: Observed, now: datetime) -> tuple[str, ...]:
    if not ring.cas:
        return ("there is no CA yet",)
    if ring.signer is None:
        return ("ca.key has the key of no valid CA",)
    reasons = []
    if now >= due_at(ring.signer):
        reasons.append(f"the CA has {(ring.signer.not_valid_after_utc - now).days} days left, a third of its time")
    if seen.requested is Request.CA and ring.issuer in (ring.signer, None):
        reasons.append("a rotation of the CA was requested")
    return tuple(reasons)


def _reasons_for_a_certificate(
    ring: Ring, signer: x509.Certificate, seen: Observed, rules: Rules, now: datetime
) -> tuple[str, ...]:
    server = ring.pair.server
    if ring.issuer is None or server is None:
        return tuple(str(error) for error in ring.pair.serving_errors())
    reasons = []
    if ring.issuer != signer:
        reasons.append("tls.crt is issued by the old CA")
    if not ring.pair.names.includes(rules.names):
        reasons.append(f"tls.crt is for {ring.pair.names}, not for {rules.names}")
    if now >= due_at(server):
        reasons.append(f"tls.crt has {(server.not_valid_after_utc - now).days} days left, a third of its time")
    if seen.requested is Request.SERVING:
        reasons.append("a rotation was requested")
    return tuple(reasons)


def _trust_wait(signer: x509.Certificate, seen: Observed, rules: Rules) -> timedelta:
    """Return the time until API servers trust `signer`; none without webhooks, because then no API server calls."""
    if not seen.bundles:
        return _NOW
    return max(rules.trust_wait - (seen.trusted_for or {}).get(signer, _NOW), _NOW)
