"""`demo`: the main job end to end, on a sample cluster, over real TLS; no Kubernetes needed."""

import asyncio
import base64
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import aiohttp
import click
import orjson
from rich.console import Console

from certs.pki import issue_ca, issue_server
from webhook.app import build_server
from webhook.audit.record import AuditRecord, parse_line
from webhook.audit.writer import AuditWriter
from webhook.cli.logs import configure_logs
from webhook.cli.screen import SafeConsole, marked
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import JsonObject, parse
from webhook.kube.workload import pod_name
from webhook.metrics import Metrics
from webhook.placement.profile import PROFILES
from webhook.placement.scheduler import Scheduler
from webhook.policy.loader import built_in_policy
from webhook.serving.server import Server
from webhook.serving.view import FixedView
from webhook.settings import Address, Settings

_STORY = "demo/story"
_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Infeasible": "red", "Unknown": "magenta"}
_OUTCOMES = {"Patched": "green", "Denied": "red"}
_LOOPBACK = Address("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Scene:
    """One pod of the demo and what came back for it."""

    number: int
    pod: JsonObject
    response: JsonObject
    record: AuditRecord


@click.command()
@click.option(
    "--audit",
    "audit_file",
    type=click.Path(path_type=Path),
    help="Where the audit log goes; default: a new temporary folder.",
)
def demo(audit_file: Path | None) -> None:
    """See the main job end to end on a sample cluster, over real TLS. Needs no Kubernetes.

    Makes a CA, serves the webhook on loopback, posts AdmissionReviews for six pods as a kube-apiserver would, and tells
    what was injected, where each pod would go and why.
    """
    configure_logs("auto", "warning")
    console = SafeConsole(soft_wrap=True)
    log = audit_file or Path(tempfile.mkdtemp(prefix="placement-webhook-demo-")) / "audit.jsonl"
    snapshot = snapshot_from_documents(parse(_sample("cluster.yaml"), "sample/cluster.yaml"))
    pods = [document.content for document in parse(_sample("pods.yaml"), "sample/pods.yaml")]
    _introduce(console, snapshot)
    with AuditWriter(log) as audit, tempfile.TemporaryDirectory() as tls_dir:
        folder = Path(tls_dir)
        trust = _issue(folder)
        settings = Settings(tls_dir=folder, listen=_LOOPBACK, admin_listen=_LOOPBACK, replica="demo")
        server = build_server(settings, built_in_policy(), FixedView(snapshot), audit, Metrics())
        answers = asyncio.run(_play(server, trust, pods))
    records = [parse_line(line) for line in log.read_bytes().splitlines()[-len(pods) :]]
    scenes = [Scene(*scene) for scene in zip(range(1, len(pods) + 1), pods, answers, records, strict=True)]
    for scene in scenes:
        _tell(console, scene, snapshot)
    _conclude(console, scenes, log)


def _sample(name: str) -> bytes:
    return files("webhook.cli").joinpath("sample", name).read_bytes()


def _issue(folder: Path) -> ssl.SSLContext:
    """Put a server certificate into `folder`; the client's side that trusts its CA and nothing else."""
    now = datetime.now(UTC)
    ca = issue_ca(now=now)
    server = issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now)
    (folder / "tls.crt").write_bytes(server.certificate)
    (folder / "tls.key").touch(mode=0o600)
    (folder / "tls.key").write_bytes(server.key)
    return ssl.create_default_context(cadata=ca.certificate.decode())


async def _play(server: Server, trust: ssl.SSLContext, pods: list[JsonObject]) -> list[JsonObject]:
    """Serve, post every pod, stop serving; the responses."""
    stop = asyncio.Event()
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.run(stop, lambda address, _: ready.set_result(address)))
    responses = []
    try:
        url = f"https://{await ready}/mutate?timeout=5s"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as client:
            for number, pod in enumerate(pods, start=1):
                async with client.post(url, json=_review(pod, number)) as answer:
                    answer.raise_for_status()
                    responses.append((await answer.json())["response"])
    finally:
        stop.set()
        await serving
    return responses


def _review(pod: JsonObject, number: int) -> JsonObject:
    request = {
        "uid": f"demo-{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": pod["metadata"]["namespace"],
        "name": pod["metadata"].get("name", ""),
        "operation": "CREATE",
        "userInfo": {"username": "demo"},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _introduce(console: Console, snapshot: Snapshot) -> None:
    console.print(f"[bold]The sample cluster: {len(snapshot.nodes)} nodes, one of them the control plane[/bold]")
    gpus = snapshot.allocatable("nvidia.com/gpu")
    free = gpus - snapshot.requested("nvidia.com/gpu")
    for usage in ("training", "inference", "hybrid"):
        nodes = [(row, info.node) for row, info in enumerate(snapshot.nodes)]
        pool = [(row, node) for row, node in nodes if node.labels.get("maip.mxsf.io/node.usage") == usage]
        parts = [f"{node.name} {free[row]}/{gpus[row]}" for row, node in pool]
        console.print(f"   {usage:<9} free GPUs: {', '.join(parts)}")
    console.print()


def _tell(console: Console, scene: Scene, snapshot: Snapshot) -> None:
    pod, record, response = scene.pod, scene.record, scene.response
    annotations = pod["metadata"]["annotations"]
    console.print(f"[bold]{scene.number}. {annotations[_STORY]}[/bold]")
    asked = [f"{key.partition('/')[2]}={value}" for key, value in annotations.items() if key != _STORY]
    console.print(f"   pod       {marked(pod_name(pod))}  {marked('  '.join(asked)) or '(no annotation)'}")
    colour = _OUTCOMES.get(record.outcome, "cyan")
    allowed = "allowed" if response["allowed"] else "refused"
    why = f": {marked(record.error or '')}" if record.outcome == "Bypassed" else ""
    console.print(f"   answer    [{colour}]{allowed}, {record.outcome}[/{colour}]{why} ({record.duration_ms:.1f} ms)")
    if not response["allowed"]:
        for line in response["status"]["message"].split("; metadata."):
            console.print(f"             {marked(line)}")
    for rule in record.rules:
        for edit in rule.edits:
            console.print(f"   injected  [dim]{rule.name:<18}[/dim] {marked(edit)}")
    for warning in response.get("warnings", ()):
        console.print(f"   [yellow]warning[/yellow]   {marked(warning)}")
    if record.placement is not None:
        _tell_placement(console, scene, snapshot)
    console.print()


def _tell_placement(console: Console, scene: Scene, snapshot: Snapshot) -> None:
    """The verdict, and the scores by which the node was chosen."""
    placement = scene.record.placement
    assert placement is not None  # noqa: S101 - the caller has looked
    colour = _COLOURS[placement.verdict]
    where = f" on [bold]{placement.node}[/bold]" if placement.node else ""
    console.print(f"   verdict   [{colour}]{placement.verdict}[/{colour}]{where}: {marked(placement.message)}")
    scored = Scheduler(PROFILES["default"]).place(_patched(scene), snapshot)
    ranked = sorted(scored.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    for rank, (node, scores) in enumerate(ranked):
        parts = ", ".join(f"{plugin} {score}" for plugin, score in scores.items() if plugin != "total")
        told = f"{scores['total']} = {parts}" if parts else "the only node that can take it"
        console.print(f"   {'why' if rank == 0 else '':<9} {node:<15} {told}")


def _patched(scene: Scene) -> JsonObject:
    import jsonpatch

    operations = orjson.loads(base64.b64decode(scene.response.get("patch", "W10=")))
    pod: JsonObject = jsonpatch.apply_patch(scene.pod, operations)
    return pod


def _conclude(console: Console, scenes: list[Scene], log: Path) -> None:
    counts: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    for scene in scenes:
        counts[scene.record.outcome] = counts.get(scene.record.outcome, 0) + 1
        if scene.record.placement is not None:
            verdicts[scene.record.placement.verdict] = verdicts.get(scene.record.placement.verdict, 0) + 1
    console.print("[bold]The audit log says[/bold]")
    console.print(f"   outcomes  {_counted(counts)}")
    console.print(f"   verdicts  {_counted(verdicts)}")
    console.print(f"   file      {marked(str(log))}")
    command = ".venv/bin/placement-webhook audit"
    console.print(f"   read on   {command} show {scenes[0].record.decision} {marked(str(log))}")
    console.print(f"             {command} verify {marked(str(log))}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
