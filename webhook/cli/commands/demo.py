"""`demo`: run the main job end to end on a sample cluster, over real TLS, without Kubernetes."""

import asyncio
import base64
import os
import shlex
import ssl
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import aiohttp
import click
import orjson
from rich.console import Console

from certs.pki import issue_ca, issue_server
from webhook.audit.pods import PodFile
from webhook.audit.record import AuditRecord, PlacementEntry, parse_line
from webhook.audit.writer import STANDARD_OUTPUT, AuditWriter
from webhook.backends.volcano import Volcano
from webhook.cli.inputs.files import PATH, file_option
from webhook.cli.output.logs import configure_logs
from webhook.cli.output.program import as_called
from webhook.cli.output.screen import SafeConsole, coloured, marked
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, JsonObject, parse
from webhook.kube.api.independent_patch import independently_patched
from webhook.kube.workloads.pod_set import pod_name
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.policy.loader import built_in_policy
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address, Settings
from webhook.serving.app import build_server
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.pod_recorder import PodRecorder
from webhook.serving.http.tls import Pair, in_memory
from webhook.serving.policies.in_force import Policies
from webhook.serving.server import Server
from webhook.serving.view.views import FixedView

_TITLE = "demo/story"
_OUTCOMES = {"Patched": "green", "Denied": "red"}
_LOOPBACK = Address("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Step:
    """One pod of the demo with its answer and audit record."""

    number: int
    pod: JsonObject
    response: JsonObject
    record: AuditRecord


@click.command()
@file_option("--audit", "audit_file", kind=PATH, help="Write the audit log, with its pods, to this file.")
@click.option("--keep", is_flag=True, help="Keep the audit log in a new temporary folder.")
def demo(audit_file: Path | None, keep: bool) -> None:
    """Run the main job end to end on a sample cluster, over real TLS. It needs no Kubernetes.

    Issues a CA, serves the webhook on loopback, posts AdmissionReviews for seven pods as a kube-apiserver would, and
    prints the injected fields and the predicted node of each pod with its scores. It leaves no file behind, unless you
    ask for the audit log.

    \b
    Examples:
      placement-webhook demo
      placement-webhook demo --audit audit.jsonl
    """
    configure_logs("auto", "warning")
    console = SafeConsole(soft_wrap=True)
    if keep and audit_file is None:
        audit_file = Path(tempfile.mkdtemp(prefix="placement-webhook-demo-")) / "audit.jsonl"
    snapshot = snapshot_from_documents(_sample("cluster.yaml"))
    evidence = SchedulerEvidence(frozenset({Volcano.api_groups[0]}), "kube-scheduler\nvolcano")
    snapshot = replace(snapshot, scheduler_evidence=evidence)
    pods = [document.content for document in _sample("pods.yaml")]
    _print_cluster(console, snapshot)
    pair, trust = _issue()
    settings = Settings(tls_dir=pair.tls_dir, listen=_LOOPBACK, admin_listen=_LOOPBACK, replica="demo")
    metrics = Metrics()
    policies = Policies(built_in_policy(), metrics, rfc3339_now)
    with _log(audit_file) as (audit, kept, read_log):
        server = build_server(
            settings, policies, FixedView(snapshot), audit, metrics, pods=kept, read_pair=lambda _: pair
        )
        answers = asyncio.run(_post_pods(server, trust, pods))
        records = [parse_line(line) for line in read_log().splitlines()[-len(pods) :]]
    steps = [Step(*step) for step in zip(range(1, len(pods) + 1), pods, answers, records, strict=True)]
    for step in steps:
        _print_step(console, step, snapshot)
    _print_audit_log(console, steps, audit_file)


def _sample(name: str) -> list[Document]:
    return parse(files("webhook.cli").joinpath("sample", name).read_bytes(), f"sample/{name}")


@contextmanager
def _log(file: Path | None) -> Iterator[tuple[AuditWriter, PodRecorder | None, Callable[[], bytes]]]:
    """Yield a writer to `file`, the recorder of its pods, and a function that reads the file.

    Without a file, the log is in memory: the demo also runs where no file can be written.
    """
    if file is not None:
        with AuditWriter(file) as writer, closing(PodFile(file)) as kept:
            yield writer, PodRecorder(kept), file.read_bytes
        return
    with in_memory("audit") as memory, AuditWriter(STANDARD_OUTPUT, output_descriptor=memory.fileno()) as writer:
        yield writer, None, lambda: os.pread(memory.fileno(), os.fstat(memory.fileno()).st_size, 0)


def _issue() -> tuple[Pair, ssl.SSLContext]:
    now = datetime.now(UTC)
    ca = issue_ca(now=now)
    server = issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now)
    pair = Pair(Path("demo"), server.certificate, server.key)
    return pair, ssl.create_default_context(cadata=ca.certificate.decode())


async def _post_pods(server: Server, trust: ssl.SSLContext, pods: list[JsonObject]) -> list[JsonObject]:
    stop = asyncio.Event()
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.run(stop, lambda address, _: ready.set_result(address)))
    responses = []
    try:
        url = f"https://{await ready}/mutate?timeout=5s"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as client:
            for number, pod in enumerate(pods, start=1):
                async with client.post(url, json=_admission_review(pod, number)) as answer:
                    answer.raise_for_status()
                    responses.append((await answer.json())["response"])
    finally:
        stop.set()
        await serving
    return responses


def _admission_review(pod: JsonObject, number: int) -> JsonObject:
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


def _print_cluster(console: Console, snapshot: Snapshot) -> None:
    console.print(f"[bold]The sample cluster: {len(snapshot.nodes)} nodes, one of them the control plane[/bold]")
    gpus = snapshot.allocatable("nvidia.com/gpu")
    free = gpus - snapshot.requested("nvidia.com/gpu")
    nodes = [(info.node, f"{info.node.name} {free[row]}/{gpus[row]}") for row, info in enumerate(snapshot.nodes)]
    for usage in ("training", "inference", "hybrid"):
        parts = [part for node, part in nodes if node.labels.get("maip.mxsf.io/node.usage") == usage]
        console.print(f"   {usage:<9} free GPUs: {', '.join(parts)}")
    console.print("   kube-scheduler and Volcano run in it.")
    console.print()


def _print_step(console: Console, step: Step, snapshot: Snapshot) -> None:
    pod, record, response = step.pod, step.record, step.response
    annotations = pod["metadata"]["annotations"]
    console.print(f"[bold]{step.number}. {annotations[_TITLE]}[/bold]")
    asked = [f"{key.partition('/')[2]}={value}" for key, value in annotations.items() if key != _TITLE]
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
        _print_placement(console, step, record.placement, snapshot)
    console.print()


def _print_placement(console: Console, step: Step, placement: PlacementEntry, snapshot: Snapshot) -> None:
    where = f" on [bold]{placement.node}[/bold]" if placement.node else ""
    console.print(f"   verdict   {coloured(placement.verdict)}{where}: {marked(placement.message)}")
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, BUILT_IN_SCHEDULERS)
    scored = schedulers.answer(PodSignature.of(_patched(step)), snapshot)
    ranked = sorted(scored.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    for rank, (node, scores) in enumerate(ranked):
        parts = ", ".join(f"{plugin} {score}" for plugin, score in scores.items() if plugin != "total")
        line = f"{scores['total']} = {parts}" if parts else "the only node that can take it"
        console.print(f"   {'why' if rank == 0 else '':<9} {node:<15} {line}")


def _patched(step: Step) -> JsonObject:
    return independently_patched(step.pod, orjson.loads(base64.b64decode(step.response.get("patch", "W10="))))


def _print_audit_log(console: Console, steps: list[Step], log: Path | None) -> None:
    records = [step.record for step in steps]
    verdicts = (each.placement.verdict for each in records if each.placement is not None)
    console.print("[bold]The audit log[/bold]")
    console.print(f"   outcomes  {_counted(each.outcome for each in records)}")
    console.print(f"   verdicts  {_counted(verdicts)}")
    command = marked(as_called())
    if log is None:
        console.print(f"   file      not kept; to keep it: {command} demo --keep")
        return
    file = marked(shlex.quote(str(log)))
    console.print(f"   file      {marked(str(log))}")
    console.print(f"   read on   {command} audit show {steps[0].record.decision} {file}")
    console.print(f"             {command} audit verify {file}")


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(Counter(names).items()))
