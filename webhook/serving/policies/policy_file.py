"""Follows the policy file: validates changed content, and puts it into force.

The content is polled, not watched: a mounted ConfigMap changes by a swap of the symlink `..data`, other writers rename
or change the file in place, and reading one small file covers all of them. A file that is written in place can be read
in part, and a part can be a valid policy, so polled content counts once two polls in a row have read it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import structlog

from webhook.documents.field import InvalidInput, invalid
from webhook.policy.policy_set import PolicyOrSet
from webhook.serving.policies.in_force import Policies, errors_of
from webhook.serving.scheduling.worker import in_background

MAX_POLICY_BYTES = 1024 * 1024
"""The largest policy: that is also the largest ConfigMap."""


def read_policy_file(path: Path) -> bytes:
    """Return the content of the policy file.

    Raises:
        InvalidInput: the file cannot be read or is too large.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise InvalidInput([invalid("--policy", str(path), f"cannot be read: {error.strerror}")]) from error
    if len(text) > MAX_POLICY_BYTES:
        raise InvalidInput([invalid("--policy", str(path), f"must have at most {MAX_POLICY_BYTES} bytes")])
    return text


class PolicyFile:
    """Follows the file `path`, whose content `text` is in force in `policies`.

    `validated` returns the policies in a text, whose errors begin with a place. It runs in another thread.
    """

    def __init__(
        self, path: Path, text: bytes, policies: Policies, validated: Callable[[bytes, str], PolicyOrSet]
    ) -> None:
        self._path = path
        self._policies = policies
        self._validated = validated
        # The content that was put into force, that was judged last and that the last poll read. A file that cannot be
        # read has its error for content.
        self._applied: bytes | str = text
        self._judged: bytes | str = text
        self._polled: bytes | str = text
        self._reloading = asyncio.Lock()
        self._log = structlog.get_logger()

    async def reload(self) -> None:
        """Judge the content of the file now, even if it is not new."""
        async with self._reloading:
            await self._judge(await asyncio.to_thread(self._read))

    def unready_reason(self) -> str:
        """Return the empty text: the policy that the server starts with is in force."""
        return ""

    async def poll(self) -> None:
        """Read the file; judge content that is new and that the poll before has read, too."""
        async with self._reloading:
            content, before = await asyncio.to_thread(self._read), self._polled
            self._polled = content
            if content == before and content != self._judged:
                await self._judge(content)

    async def _judge(self, content: bytes | str) -> None:
        """Put valid content into force whole; leave the last good policy in force otherwise."""
        self._judged = self._polled = content
        if isinstance(content, str):
            self._policies.reject((content,))
        elif content == self._applied:
            self._policies.confirm()
        else:
            try:
                policy = await asyncio.to_thread(self._validated, content, str(self._path))
            except Exception as error:
                self._policies.reject(errors_of(error))
                return
            self._applied = content
            self._policies.replace(policy)

    def _read(self) -> bytes | str:
        try:
            return read_policy_file(self._path)
        except InvalidInput as error:
            return str(error.errors[0])
        except Exception as error:
            return errors_of(error)[0]

    def polled(self, poll_seconds: float) -> AbstractAsyncContextManager[None]:
        """Poll the file until the block ends."""
        return in_background(self._poll(poll_seconds), "policy")

    async def _poll(self, poll_seconds: float) -> None:
        while True:
            await asyncio.sleep(poll_seconds)
            try:
                await self.poll()
            except Exception:
                # The file is followed as long as the server runs.
                self._log.exception("the policy file cannot be followed")
