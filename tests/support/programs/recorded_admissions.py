"""Audit files with the pods of their records, written as `serve --audit-pods` writes them."""

import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from tests.support.admission import DOMAIN, policy_with
from tests.support.objects.clusters import review
from tests.support.servers.server import arrival, make_work_budget
from webhook.admission.cluster_view import ClusterView
from webhook.audit.pods import PodFile
from webhook.audit.writer import AuditWriter
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.admissions import Admissions, new_decision_id
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.pod_recorder import PodRecorder


def write_recorded(
    path: Path, bodies: Iterable[bytes], policy: Policy | None = None, cluster: ClusterView | None = None
) -> Path:
    """Return the audit file of a server that was sent these reviews, with `FILE.pods` beside it."""
    chosen, lane = policy or policy_with(), DecisionCache()
    writer, pods = AuditWriter(path, max_bytes=0), PodFile(path)
    admissions = Admissions(
        Metrics(),
        audit=writer.stage,
        monotonic_seconds=lambda: 0.0,
        new_decision=partial(new_decision_id, []),
        replica="replica-a",
        pods=PodRecorder(pods),
    )
    for body in bodies:
        decision = admissions.decide(lane, body, chosen, cluster, make_work_budget())
        answer = admissions.finish(decision, arrival(rfc3339_now()))
        assert answer.status == 200, answer.body
    writer.close()
    pods.close()
    return path


def generated_review(number: int) -> bytes:
    """Return the review of pod `number` of a day: of few templates, with what users get wrong."""
    rng = random.Random(number % 400)
    asked = orjson.loads(review(number, shape=rng.randrange(40)))
    pod: dict[str, Any] = asked["request"]["object"]
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata["annotations"]
    annotations[f"{DOMAIN}/workload-type"] = rng.choice(["training", "training", "inference", "trainning", ""])
    annotations["example.com/note"] = rng.choice(["a", "b"])
    for name, values in {
        "bin-packing": ["true", "false", "maybe"],
        "scheduler": ["default-scheduler", "volcano", "other"],
        "spread": ["host", "zone", "none"],
        "gang-size": ["4", "x"],
        "inject": ["disabled"],
    }.items():
        if rng.random() < 0.2:
            annotations[f"{DOMAIN}/{name}"] = rng.choice(values)
    if rng.random() < 0.1:
        del metadata["annotations"]
    if rng.random() < 0.2:
        spec["nodeName"] = "node-1"
    if rng.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    spec["containers"][0]["env"] = [{"name": "TOKEN", "value": f"secret-{number}"}]
    return orjson.dumps(asked)
