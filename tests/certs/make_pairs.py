"""Writes tests/certs/pairs: `python -m tests.certs.make_pairs`, where openssl is installed.

Each file holds one pair as people make them with openssl, cfssl or cert-manager, and whether the API server trusts it.
The keys protect nothing.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

PAIRS = Path(__file__).parent / "pairs"
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
CA = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash"
KEYS = {
    "ec": ("ecparam", "-name", "prime256v1", "-genkey"),
    "rsa-pkcs1": ("genrsa", "-traditional", "2048"),
    "rsa-pkcs8": ("genpkey", "-algorithm", "RSA"),
    "ed25519": ("genpkey", "-algorithm", "ED25519"),
}


class Shape:
    """A folder in which openssl makes one pair."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name: str, subject: str, extensions: str, key: str, md: str, *arguments: str) -> None:
        self.openssl(KEYS[key][0], "-out", f"{name}.key", *KEYS[key][1:])
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={subject}", "-out", f"{name}.csr")
        (self.folder / "extensions").write_text(f"{extensions}\n")
        given = ("-extfile", "extensions") if extensions else ()
        self.openssl("x509", "-req", "-in", f"{name}.csr", md, *given, *arguments, "-out", f"{name}.crt")

    def ca(self, name: str = "ca", extensions: str = CA, key: str = "ec", issuer: str = "") -> "Shape":
        by = ["-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.key", "-CAcreateserial"] if issuer else []
        by = by or ["-signkey", f"{name}.key"]
        self.sign(name, f"Own {name}", extensions, key, "-sha256", *by, "-days", "36500")
        return self

    def leaf(self, extensions: str = NAMES, key: str = "ec", md: str = "-sha256", *arguments: str) -> "Shape":
        by = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "36500", *arguments)
        self.sign("tls", "localhost", extensions, key, md, *by)
        return self

    def self_signed(self, *arguments: str) -> "Shape":
        common = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "36500")
        self.openssl(*common, "-keyout", "tls.key", "-out", "tls.crt", "-subj", "/CN=localhost", *arguments)
        self.join("ca.crt", "tls.crt")
        return self

    def default_ca(self) -> "Shape":
        common = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "36500")
        self.openssl(*common, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Own ca")
        return self

    def intermediate(self) -> "Shape":
        return self.ca("root").ca(issuer="root").leaf()

    def join(self, name: str, *files: str) -> "Shape":
        (self.folder / name).write_bytes(b"".join((self.folder / file).read_bytes() for file in files))
        return self

    def crlf(self) -> "Shape":
        for file in ("ca.crt", "tls.crt", "tls.key"):
            path = self.folder / file
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        return self


TRUSTED: dict[str, Callable[[Shape], Shape]] = {
    "ec-parameters-block": lambda at: at.ca().leaf(),
    "rsa-pkcs1": lambda at: at.ca(key="rsa-pkcs1").leaf(key="rsa-pkcs1"),
    "rsa-pkcs8": lambda at: at.ca(key="rsa-pkcs8").leaf(key="rsa-pkcs8"),
    "ed25519": lambda at: at.ca().leaf(key="ed25519"),
    "ed25519-ca": lambda at: at.ca(key="ed25519").leaf(),
    "text-before-pem": lambda at: at.ca().leaf(NAMES, "ec", "-sha256", "-text"),
    "crlf": lambda at: at.ca().leaf().crlf(),
    "ip-only": lambda at: at.ca().leaf("subjectAltName=IP:127.0.0.1"),
    "serial-1": lambda at: at.ca().leaf(NAMES, "ec", "-sha256", "-set_serial", "1"),
    "no-key-identifiers": lambda at: at.ca().leaf(f"{NAMES}\nauthorityKeyIdentifier=none\nsubjectKeyIdentifier=none"),
    "all-usages": lambda at: at.ca().leaf(f"{NAMES}\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth"),
    "ca-of-req-x509": lambda at: at.default_ca().leaf(),
    "ca-not-critical": lambda at: at.ca(extensions="basicConstraints=CA:TRUE").leaf(),
    "ca-v1": lambda at: at.ca(extensions="").leaf(),
    "self-signed-of-req-x509": lambda at: at.self_signed("-addext", NAMES),
    "self-signed-no-ca": lambda at: at.self_signed("-addext", NAMES, "-addext", "basicConstraints=critical,CA:FALSE"),
    "chain-of-cert-manager": lambda at: (
        at.intermediate().join("tls.crt", "tls.crt", "ca.crt").join("ca.crt", "root.crt")
    ),
    "chain-with-root": lambda at: (
        at.intermediate().join("tls.crt", "tls.crt", "ca.crt", "root.crt").join("ca.crt", "root.crt")
    ),
    "ca-is-an-intermediate": lambda at: at.intermediate(),
    "bundle-of-cfssl": lambda at: at.ca().leaf().ca("other").join("ca.crt", "other.crt", "ca.crt"),
    "key-in-tls-crt": lambda at: at.ca().leaf().join("tls.crt", "tls.key", "tls.crt"),
}
UNTRUSTED: dict[str, Callable[[Shape], Shape]] = {
    "common-name-only": lambda at: at.ca().leaf(""),
    "client-only": lambda at: at.ca().leaf(f"{NAMES}\nextendedKeyUsage=clientAuth"),
    "no-intermediate": lambda at: at.intermediate().join("ca.crt", "root.crt"),
    "issuer-is-no-ca": lambda at: at.ca(extensions="basicConstraints=CA:FALSE").leaf(),
    "other-name": lambda at: at.ca().leaf("subjectAltName=DNS:example.com"),
}
NOT_SERVED: dict[str, Callable[[Shape], Shape]] = {
    "sha-1": lambda at: at.ca(key="rsa-pkcs8").leaf(NAMES, "rsa-pkcs8", "-sha1"),
    "intermediate-first": lambda at: at.intermediate().join("tls.crt", "ca.crt", "tls.crt").join("ca.crt", "root.crt"),
}


def main() -> None:
    """Write all pairs."""
    PAIRS.mkdir(exist_ok=True)
    for kind, shapes in (("trusted", TRUSTED), ("untrusted", UNTRUSTED), ("not served", NOT_SERVED)):
        for name, make in shapes.items():
            with tempfile.TemporaryDirectory() as folder:
                made = make(Shape(Path(folder))).folder
                files = {file: (made / file).read_bytes().decode() for file in ("ca.crt", "tls.crt", "tls.key")}
            (PAIRS / f"{name}.json").write_text(json.dumps({"kind": kind, "files": files}, indent=1) + "\n")


if __name__ == "__main__":
    main()
