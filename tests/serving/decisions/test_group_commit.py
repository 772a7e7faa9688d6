"""Records of one event-loop iteration are written in one batch, and every answer waits for its record."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tests.support.programs.audit_records import make_record
from webhook.audit.lines import RecordTemplate, UnsealedRecord
from webhook.kube.api.admission import AdmissionRequest
from webhook.serving.decisions.group_commit import GroupCommit


@dataclass
class Log:
    """A staged log that records its calls, and fails while it is `broken`."""

    calls: list[str] = field(default_factory=list)
    broken: bool = False

    def stage(self, record: UnsealedRecord) -> None:
        self.calls.append(record.decision)

    def flush(self) -> None:
        self.calls.append("flush")
        if self.broken:
            raise RuntimeError("out of ink")


def draft(decision: str) -> UnsealedRecord:
    record = make_record()
    return UnsealedRecord("", decision, AdmissionRequest(), 0.0, "", RecordTemplate.of(record))


def run(log: Log, story: Callable[[GroupCommit], Awaitable[None]]) -> None:
    async def begin() -> None:
        await story(GroupCommit(log.flush))

    asyncio.run(begin())


async def answer(turns: GroupCommit, log: Log, decision: str) -> None:
    log.stage(draft(decision))
    await turns.written()
    log.calls.append(f"answer to {decision}")


def test_records_of_one_iteration_are_written_before_their_answers_are_sent() -> None:
    log = Log()

    async def story(turns: GroupCommit) -> None:
        await asyncio.gather(*(answer(turns, log, name) for name in "abc"))
        await answer(turns, log, "d")

    run(log, story)

    assert log.calls == [*"abc", "flush", *(f"answer to {name}" for name in "abc"), "d", "flush", "answer to d"]


def test_a_cancelled_wait_does_not_cancel_others() -> None:
    log = Log()

    async def story(turns: GroupCommit) -> None:
        first, second = (asyncio.create_task(answer(turns, log, name)) for name in "ab")
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    run(log, story)

    assert log.calls == ["a", "b", "flush", "answer to b"]


def test_no_answer_is_sent_if_the_log_fails() -> None:
    log = Log(broken=True)

    async def story(turns: GroupCommit) -> None:
        with pytest.raises(RuntimeError, match="out of ink"):
            await answer(turns, log, "a")

    run(log, story)

    assert log.calls == ["a", "flush"]


def test_an_answer_that_cannot_be_sent_keeps_no_other_one_from_being_sent() -> None:
    reported: list[object] = []

    async def story(turns: GroupCommit) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

        def cannot(_: Exception | None) -> None:
            raise broken

        turns.when_written(cannot)
        turns.when_written(sent.append)
        await asyncio.sleep(0)

    sent: list[Exception | None] = []
    broken = RuntimeError("the transport is closed")
    run(Log(), story)
    assert (reported, sent) == ([broken], [None])
