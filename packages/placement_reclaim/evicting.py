"""The run of `reclaim --evict`: what it prints, the Events on evicted pods, and the audit records."""

import asyncio
import signal
import socket
import time
import uuid
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.console import Console

from placement_reclaim.choice import Chosen, Limits, PolicyOf
from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects, full_name
from placement_reclaim.eviction import Evicted, Evictions, user_of, write_event
from placement_reclaim.owners import Owner
from placement_reclaim.text import since_text
from webhook.audit.record import AuditRecord, Outcome, PolicyName
from webhook.audit.record import Owner as AuditOwner
from webhook.audit.writer import AuditWriter
from webhook.cli.inputs.live import ask
from webhook.cli.output.screen import print_lines
from webhook.cli.output.terminal import echo, echo_json
from webhook.cluster.batch import fields
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, ClientConfig

KIND = "reclaim"
_OUTCOMES: dict[str, Outcome] = {
    "evicted": "Evicted",
    "would be evicted": "Evicted",
    "refused": "Denied",
    "left alone": "Bypassed",
}


@dataclass
class EvictionRun:
    """One run: `console` is None for JSON, `audit_path` is None without records."""

    source: ClientConfig
    console: Console | None
    policy_of: PolicyOf
    audit_path: str | None
    is_confirmed: bool
    _counts: Counter[str] = field(default_factory=Counter, init=False)

    def run(self, chosen: list[Chosen], objects: Objects, gang_of: GangOf, limits: Limits, least_seconds: int) -> bool:
        """Evict, and print the result of each pod and a summary; return whether the user has interrupted it.

        Ctrl-C ends the run after the eviction that is under way, so that its answer is on record.

        Raises:
            ApiServerError: the pods cannot be read again.
            InvalidInput: the audit file cannot be used.
        """

        async def evict(server: ApiServer) -> bool:
            stop, user = asyncio.Event(), await user_of(server)
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
            evictions = Evictions(
                server, objects, gang_of, limits, _now, least_seconds, stop, is_confirmed=self.is_confirmed
            )
            async for result in evictions.run(chosen):
                if writer is not None:
                    writer.write(self._record(result, user))
                self._print(result)
                if result.result == "evicted":
                    await self._note(server, result)
            return stop.is_set()

        with AuditWriter(self.audit_path) if self.audit_path else nullcontext() as writer:
            is_interrupted = ask(self.source, evict)
        summary = ", ".join(f"{count} {result}" for result, count in self._counts.items()) or "no pod is held"
        if self.console is not None or is_interrupted:
            end = "" if self.is_confirmed else "; nothing is evicted without --confirm"
            echo(f"{'interrupted: ' if is_interrupted else ''}{summary}{end}", err=self.console is None)
        return is_interrupted

    def _print(self, result: Evicted) -> None:
        self._counts[result.result] += 1
        returns = result.held.returns and result.result in ("evicted", "would be evicted")
        detail = result.detail or result.held.reason
        if self.console is not None:
            end = "; returns at once: a controller makes it again" if returns else ""
            print_lines(self.console, [f"{result.result}: {result.name}: {detail}{end}"], indent=0)
            return
        echo_json(
            {
                "pod": result.name,
                "class": result.held.reason,
                "result": result.result,
                "message": result.detail or None,
                "dryRun": not self.is_confirmed,
                "returns": returns,
            }
        )

    async def _note(self, server: ApiServer, result: Evicted) -> None:
        try:
            await write_event(server, result, f"evicted, because its cards are held and not used: {_why(result)}")
        except ApiServerError as error:
            echo(f"no Event on {result.name}: {error}", err=True)

    def _record(self, result: Evicted, user: str) -> AuditRecord:
        namespace, name = full_name(result.pod)
        policy, owner = self.policy_of(namespace), AuditOwner(*Owner.of(result.pod)[:2])
        return AuditRecord(
            time=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            decision=uuid.uuid4().hex,
            uid=fields.text(result.pod, "metadata", "uid"),
            dry_run=not self.is_confirmed,
            operation="EVICT",
            namespace=namespace,
            name=name,
            owner=owner if owner.kind != "Pod" else None,
            user=user,
            workload_type=None,
            policy=PolicyName(policy.name, policy.revision),
            outcome=_OUTCOMES[result.result],
            rules=(),
            patch=(),
            warnings=(_why(result),),
            placement=None,
            error=result.detail or None,
            duration_ms=0.0,
            replica=socket.gethostname(),
            kind=KIND,
        )


def _now() -> int:
    return int(time.time())


def _why(result: Evicted) -> str:
    held = result.held
    cards = ", ".join(f"{count} {resource}" for resource, count in held.cards.items())
    return f"{held.reason}: {cards}: {since_text(held.since, _now())}: {held.why}"
