"""Carry out a step: return the new content of the Secret. Pure, but for the random keys."""

from dataclasses import replace
from datetime import datetime

from certs import pem
from certs.inspection import Artifacts
from certs.names import ServerNames
from certs.pki import KeyPair, issue_ca, issue_server
from certs.rotation.plan import Action, Step
from certs.rotation.state import Request, Ring, Rules, newest, read_ring

_FULFILS = {
    Action.ADD_NEXT_CA: Request.CA,
    Action.ISSUE_SERVING: Request.SERVING,
    Action.SWITCH_TO_NEXT_CA: Request.SERVING,
}


def fulfils(step: Step, requested: Request | None) -> bool:
    """Return whether the rotation that was requested is done, or begun, with `step`."""
    return requested is not None and _FULFILS.get(step.action) is requested


def carried_out(step: Step, held: Artifacts, rules: Rules, now: datetime) -> Artifacts:
    """Return the content of the Secret after the action of `step`, which was planned for `held`."""
    ring = read_ring(held, now)
    if step.action is Action.ADD_NEXT_CA:
        ca = issue_ca(now=now, validity=rules.ca_validity)
        first = (*pem.certificates(ca.certificate, "ca.crt"), *((ring.issuer,) if ring.issuer else ()))
        return replace(held, ca_certificate=pem.encode(*newest(step.ca_bundle, first=first)), ca_key=ca.key)
    if ring.signer is None or step.action is Action.KEEP:
        return held
    if step.action is Action.DROP_OLD_CA:
        return replace(held, ca_certificate=pem.encode(ring.signer))
    names = _names(ring, rules)
    ca = KeyPair(pem.encode(ring.signer), held.ca_key or b"")
    server = issue_server(
        ca,
        dns_names=names.dns_names,
        ip_addresses=map(str, names.ip_addresses),
        now=now,
        validity=rules.server_validity,
    )
    cas = pem.encode(*newest(ring.cas, first=(ring.signer,)))
    return replace(held, ca_certificate=cas, certificate=server.certificate, key=server.key)


def _names(ring: Ring, rules: Rules) -> ServerNames:
    """Return the names of the next certificate: those of the present one stay, because API servers may call them."""
    present = ring.pair.names if ring.issuer is not None else ServerNames((), ())
    return ServerNames(
        tuple(dict.fromkeys((*rules.names.dns_names, *present.dns_names))),
        tuple(dict.fromkeys((*rules.names.ip_addresses, *present.ip_addresses))),
    )
