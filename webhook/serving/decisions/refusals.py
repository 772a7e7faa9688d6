"""Requests beyond a limit of the server: those of policies in shadow mode are not refused but left alone."""

from collections.abc import Callable

from aiohttp import web

from webhook.admission.pipeline import ClusterView
from webhook.policy.policy_set import PolicyOrSet, may_be_in_shadow
from webhook.serving.connection import Connection
from webhook.serving.decisions.admissions import Admissions, Answer, BeyondLimitError


class LimitError(BeyondLimitError):
    """A limit refuses a request with `refusal`; `beginning` is what was read of its body."""

    def __init__(self, refusal: web.HTTPException, beginning: bytes = b"") -> None:
        super().__init__((refusal.text or "").strip())
        self.refusal = refusal
        self.beginning = beginning


class ShadowedRefusals:
    """Answers reviews that are not read to their end, by the policies in force at that moment."""

    def __init__(
        self, admissions: Admissions, policy: Callable[[], PolicyOrSet], cluster: Callable[[], ClusterView | None]
    ) -> None:
        self._admissions = admissions
        self._policy = policy
        self._cluster = cluster

    @property
    def are_possible(self) -> bool:
        """Return whether a policy is in shadow mode, so that reading the beginning of a body can help."""
        return may_be_in_shadow(self._policy())

    def answer(
        self, error: LimitError, beginning: bytes, now: str, arrived_seconds: float, connection: Connection
    ) -> Answer:
        """Return the answer to leave the object alone, to a review that has this beginning.

        Raises:
            HTTPException: the policy is not in shadow mode, or the beginning does not show which one is in force.
        """
        decision = self._admissions.refuse(beginning, self._policy(), self._cluster(), error)
        if decision.request is None:
            raise error.refusal from error
        return self._admissions.finish(decision, now, arrived_seconds, connection)
