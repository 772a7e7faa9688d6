"""Answers and records of equal pods."""

from dataclasses import replace
from typing import Any

import orjson

from tests.support.servers.server import World, review
from webhook.audit.record import AuditRecord


def body_of(pod: dict[str, Any], number: int) -> bytes:
    return orjson.dumps(review(pod, uid=f"uid-{number}", userInfo={"username": f"user-{number}"}))


def answers_and_records(world: World, bodies: list[bytes]) -> list[tuple[Any, AuditRecord]]:
    """Return answer and record of each body, from the same admissions, without the decision ID."""
    admissions, found = world.admissions(), []
    for body in bodies:
        answer = orjson.loads(admissions.answer(body, 1000.0, None).body)
        answer["response"]["auditAnnotations"].pop("decision")
        found.append((answer, replace(world.records[-1], decision="")))
    return found
