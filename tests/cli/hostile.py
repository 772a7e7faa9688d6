"""Objects whose texts all hold control characters and forged lines."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.admission import PRODUCT, TYPE, USAGE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.audit_records import make_record
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.threads import LocalServer, served_in_thread
from tests.support.tls.certificates import NOW
from webhook.audit.record import AuditRecord, Owner, PlacementEntry, PolicyName, RuleEntry

HOSTILE = "x\x1b]0;title\x07\x1b[31m[red]\x9b2J\u202e\u2066\u200b\x7f\u2028\r\nFORGED: all is well\t"
SURROGATE = "\ud800"


def assert_safe(text: str) -> None:
    """Assert that `text` has no control characters except line breaks, and no forged line."""
    unsafe = {char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert unsafe == set()
    assert [line for line in text.split("\n") if line.lstrip(" -+").startswith("FORGED")] == []


def hostile_pod(text: str = HOSTILE) -> dict[str, Any]:
    """Return a training pod with `text` in every free text."""
    pod = make_pod(f"pod {text}").namespace(f"team {text}").annotate(TYPE, "training").annotate(f"note {text}", text)
    pod = pod.annotate("maip.mxsf.io/scheduler", "volcano").label("jobtype", text).owner("Job", text).scheduler(text)
    pod = pod.spec(
        nodeSelector={USAGE: text, f"key {text}": text},
        tolerations=[{"key": text, "operator": "Equal", "value": text, "effect": "NoSchedule"}],
        volumes=[{"name": text, "persistentVolumeClaim": {"claimName": text}}],
    )
    return pod.requests(**{f"example.com/{text}": 1}).obj()


def denied_pod() -> dict[str, Any]:
    """Return a pod that the policy denies. The denial quotes its values."""
    return make_pod(HOSTILE).annotate(TYPE, HOSTILE).annotate(PRODUCT, HOSTILE).obj()


def malformed_pod() -> dict[str, Any]:
    """Return an invalid pod. The error quotes its field."""
    return make_pod(HOSTILE).annotate(TYPE, "training").spec(tolerations=HOSTILE, nodeSelector={HOSTILE: 1}).obj()


def held_pod() -> dict[str, Any]:
    """Return a bound pod that holds a card and does not start, for a hostile reason."""
    pod = make_pod(HOSTILE).namespace(HOSTILE).owner("ReplicaSet", HOSTILE).gpu(1).node_name(f"a {HOSTILE}")
    waiting = {"name": "main", "image": HOSTILE, "state": {"waiting": {"reason": "ErrImagePull", "message": HOSTILE}}}
    return pod.status(phase="Pending", startTime="2026-01-01T00:00:00Z", containerStatuses=[waiting]).obj()


def hostile_nodes() -> list[dict[str, Any]]:
    """Return nodes that each exclude the hostile pod for another reason."""
    return [
        make_node_object(f"a {HOSTILE}", labels={HOSTILE: HOSTILE}),
        make_node_object(f"b {HOSTILE}", taints=[f"{HOSTILE}={HOSTILE}:NoSchedule"]),
    ]


def as_list(*objects: dict[str, Any]) -> bytes:
    """Return a v1 List."""
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def hostile_record(number: int = 1) -> AuditRecord:
    """Return a record with the hostile text in every free text."""
    return make_record(
        number,
        decision=f"d{number} {HOSTILE}",
        uid=HOSTILE,
        operation=HOSTILE,
        namespace=HOSTILE,
        name=HOSTILE,
        owner=Owner(HOSTILE, HOSTILE),
        user=HOSTILE * 100,
        workload_type=HOSTILE,
        policy=PolicyName(HOSTILE, HOSTILE),
        outcome=("Denied", "Bypassed", "Error", "Patched")[number % 4],
        rules=(RuleEntry(HOSTILE, (HOSTILE,)), RuleEntry("b", (), HOSTILE)),
        patch=({"op": "replace", "path": f"/{HOSTILE}", "value": {HOSTILE: [HOSTILE]}},),
        before={f"/{HOSTILE}": HOSTILE},
        warnings=(HOSTILE,),
        placement=PlacementEntry(HOSTILE, HOSTILE, 12, 4, HOSTILE, (HOSTILE,)),
        error=HOSTILE,
        replica=HOSTILE,
    )


def write_certificates(folder: Path) -> None:
    """Write a self-signed certificate with a hostile subject and name, as `tls.crt` and `ca.crt`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOSTILE)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=100))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("a\x1b[31m\n")]), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    for file in ("ca.crt", "tls.crt"):
        (folder / file).write_bytes(pem)
    (folder / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "tls.key").chmod(0o600)


@contextmanager
def api_server(folder: Path, status: int, content: dict[str, Any]) -> Iterator[Path]:
    """Yield a kubeconfig of an API server that gives this answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = orjson.dumps(content)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    with LocalServer(("127.0.0.1", 0), Handler) as server, served_in_thread(server):
        yield write_kubeconfig(folder, f"http://127.0.0.1:{server.server_address[1]}")
