"""Answers of a server in shadow mode."""

from typing import Any

import orjson

from tests.support.admission import policy_with
from tests.support.servers.server import Answering, World, review_bytes
from webhook.audit.record import AuditRecord


def response_to(answering: Answering, content: Any, **request: Any) -> dict[str, Any]:
    answer = answering.answer(review_bytes(content, **request), 1000.0, None)
    assert answer.status == 200, answer.body
    response: dict[str, Any] = orjson.loads(answer.body)["response"]
    return response


def answers(content: Any, spec: dict[str, Any], **request: Any) -> tuple[dict[str, Any], AuditRecord, World]:
    world = World(policy=policy_with(**spec))
    response = response_to(world.admissions(), content, **request)
    return response, world.records[-1], world
