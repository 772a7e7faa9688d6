"""The objects of a server that follows a cluster, composed as `serve` does, and driven below HTTP."""

import math
from pathlib import Path
from typing import Any

import orjson

from tests.call_counts.clock import CLOCK
from tests.support.objects.clusters import cluster_documents
from tests.support.servers.server import policies_of
from tests.support.tls.certificates import make_artifacts
from webhook.audit.writer import AuditWriter
from webhook.policy.loader import built_in_policy
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Settings
from webhook.serving.app import build_server, scoring
from webhook.serving.connection import Arrival, Connection
from webhook.serving.observed.predictions import Predictions
from webhook.serving.view.live_view import live_view
from webhook.watch.api_server import ClientConfig

Object = dict[str, Any]

_PODS_PER_NODE = 2


class Served:
    """A server whose live view has so many nodes. It runs in one thread without an event loop.

    It reaches into the objects that it composes: that way no socket, no task and no thread is counted.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        artifacts = make_artifacts()
        for name, pem in {"tls.crt": artifacts.certificate, "tls.key": artifacts.key}.items():
            (folder / name).write_bytes(pem or b"")
        metrics, predictions = Metrics(), Predictions()
        policies = policies_of(built_in_policy(), metrics)
        placing = scoring(policies, observe=metrics.placement_seconds.observe)
        self._live = live_view(ClientConfig(folder / "kubeconfig"), metrics, predictions, placing.waiting, policies)
        self._audit_file = folder / "audit.jsonl"
        self._audit = AuditWriter(str(self._audit_file), on_result=metrics.count_audit_record)
        settings = Settings(tls_dir=folder, replica="replica-a")
        server = build_server(settings, policies, self._live, self._audit, metrics, predictions, None, placing)
        self._connection = Connection()
        self._dispatcher = server._endpoint.dispatcher
        # An event loop would run the end of the batch.
        self._dispatcher._is_batch_scheduled = True
        self._reflectors = {each.resource.name_in_cache: each for each in self._live._reflectors}
        objects = [dict(each.content) for each in cluster_documents(nodes, _PODS_PER_NODE)]
        objects.append({"kind": "Namespace", "metadata": {"name": "team-a"}})
        for name, reflector in self._reflectors.items():
            listing = reflector._cache.listing(name)
            listing.add([each for each in objects if each["kind"] == name])
            listing.finish()
            reflector._mark_current(CLOCK.seconds)
        self.settle()

    def admit(self, body: bytes) -> Object:
        """Return the response to a review, whose audit record is written then; a millisecond passes."""
        CLOCK.tick()
        time, deadline_seconds = "2026-01-31T12:00:00.000000Z", CLOCK.seconds + 10
        arrival = Arrival(self._connection, time, CLOCK.seconds, deadline_seconds, math.inf)
        answering = self._dispatcher.answer(body, arrival)
        try:
            answering.send(None)
        except StopIteration as done:
            answer = done.value
        else:
            raise AssertionError("the review waits for the worker thread")
        self._audit.flush()
        assert answer.status == 200, answer.body
        response: Object = orjson.loads(answer.body)["response"]
        return response

    @property
    def outcome(self) -> str:
        """Return the outcome in the last audit record."""
        return str(orjson.loads(self._audit_file.read_bytes().splitlines()[-1])["outcome"])

    def see(self, event: str, pod: Object) -> None:
        """Take an event of the watch of pods."""
        self._reflectors["Pod"]._apply(orjson.dumps({"type": event, "object": pod}))

    def settle(self) -> None:
        """Work the events into a snapshot, as the live view does in the background."""
        self._live._update()
        assert self._live._snapshot is not None
        self._live._follower.settled(self._live._snapshot)
