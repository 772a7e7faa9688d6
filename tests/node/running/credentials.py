"""Keys, certificates and kubeconfigs of a cluster whose CA is as many tools make it.

The CA has neither keyUsage nor key identifiers, as one of `openssl req -x509` and as those of managed clusters. Go, and
so kubectl, trusts such a CA; Python does not from 3.13 on, unless VERIFY_X509_STRICT is cleared.
"""

import datetime as dt
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.controlplane.configuration import kubeconfig_of
from tests.controlplane.credentials import key_pem

_LIFETIME = dt.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """The folder of the PEM files `NAME.crt` and `NAME.key`, and of the kubeconfigs `NAME.conf`."""

    folder: Path

    def certificate(self, name: str) -> Path:
        """Return the file of a certificate."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the file of a private key."""
        return self.folder / f"{name}.key"

    def kubeconfig(self, name: str) -> Path:
        """Return the kubeconfig of a user."""
        return self.folder / f"{name}.conf"


SERVICE_ACCOUNT = "service-account"
API_SERVER = "kube-apiserver"
KUBELET_SERVER = "kubelet-server"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
FRONT_PROXY = "front-proxy-client"
WEBHOOK_CLIENT = "kube-apiserver-webhook-client"
# Name of the file: the user, and its group.
_USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
}


def issue(folder: Path, server: str, node: str, addresses: tuple[str, ...], now: dt.datetime) -> NodeCredentials:
    """Return new credentials in `folder`. API servers are called by `server` and the addresses, kubelets by `node`."""
    folder.mkdir(mode=0o700, parents=True)
    made = NodeCredentials(folder)
    authority = _Authority(made, now)
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    authority.issue(API_SERVER, API_SERVER, servers=(*names, *addresses))
    authority.issue(KUBELET_SERVER, node, servers=(node, *addresses))
    for client in (KUBELET_CLIENT, FRONT_PROXY, WEBHOOK_CLIENT):
        authority.issue(client, client)
    for name, (user, group) in {**_USERS, "kubelet": (f"system:node:{node}", "system:nodes")}.items():
        authority.issue(name, user, group)
        content = kubeconfig_of(authority.certificate, made.certificate(name), made.key(name), server)
        made.kubeconfig(name).write_text(json.dumps(content))
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    made.key(SERVICE_ACCOUNT).write_bytes(key_pem(key))
    return made


class _Authority:
    def __init__(self, made: NodeCredentials, now: dt.datetime) -> None:
        self._made = made
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        signed = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self.certificate = made.certificate("ca")
        self.certificate.write_bytes(_certificate_pem(signed.sign(self._key, hashes.SHA256())))
        made.key("ca").write_bytes(key_pem(self._key))

    def issue(self, file: str, name: str, group: str = "", servers: tuple[str, ...] = ()) -> None:
        """Write a certificate and its key: a server's if it has `servers`, else a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if group:
            subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usage = ExtendedKeyUsageOID.SERVER_AUTH if servers else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(x509.Name(subject), key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if servers:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_general_name, servers)), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        self._made.certificate(file).write_bytes(_certificate_pem(certificate))
        self._made.key(file).write_bytes(key_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - dt.timedelta(minutes=5))
            .not_valid_after(self._now + _LIFETIME)
        )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
