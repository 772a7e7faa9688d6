"""Follow the policy file: validate changed content, and put it into force.

The content is polled instead of watched. A mounted ConfigMap changes by a swap of the symlink `..data`, and other
writers rename the file or change it in place. Polling covers all of them. While a file is written in place, only a part
may be read, and a part can be a valid policy. So new content is used after two polls in a row have read it. Content in
the same file that is shorter than the content in force is used after it has not changed for five seconds.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import structlog

from webhook.documents.field import InvalidInput, invalid
from webhook.policy.policy_set import PolicyOrSet
from webhook.serving.policies.in_force import Policies, errors_of
from webhook.serving.scheduling.worker import in_background

# Slower writers than this replace a file by another one.
_STABLE_SECONDS = 5.0
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

    `validated` returns the policies in a text, and raises errors that begin with the given place. It runs in another
    thread.
    """

    def __init__(
        self,
        path: Path,
        text: bytes,
        policies: Policies,
        validated: Callable[[bytes, str], PolicyOrSet],
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._policies = policies
        self._validated = validated
        # The content that was put into force, that was judged last and that the last poll read. A file that cannot be
        # read has its error for content.
        self._applied: bytes | str = text
        self._judged: bytes | str = text
        self._polled: bytes | str = text
        self._monotonic_seconds, self._polled_first_seconds = monotonic_seconds, monotonic_seconds()
        # The file of the applied content, and that of the last poll. Renaming another file to the path changes it.
        self._applied_file = self._polled_file = _number_of(path)
        self._reloading = asyncio.Lock()
        self._log = structlog.get_logger()

    async def reload(self) -> None:
        """Validate the content of the file now, even if it has not changed."""
        async with self._reloading:
            await self._judge(await asyncio.to_thread(self._read))

    def unready_reason(self) -> str:
        """Return an empty string, because the policy with which the server starts is always in force."""
        return ""

    async def poll(self) -> None:
        """Read the file. Validate the content if it is new, the same as at the previous poll, and complete."""
        async with self._reloading:
            file, content = await asyncio.to_thread(lambda: (_number_of(self._path), self._read()))
            now_seconds = self._monotonic_seconds()
            if (content, file) != (self._polled, self._polled_file):
                self._polled, self._polled_file, self._polled_first_seconds = content, file, now_seconds
            elif content != self._judged and not self._may_be_a_part(now_seconds):
                await self._judge(content)

    def _may_be_a_part(self, now_seconds: float) -> bool:
        is_same_file = self._polled_file == self._applied_file
        is_shorter = isinstance(self._polled, bytes) and len(self._polled) < len(self._applied)
        return is_same_file and is_shorter and now_seconds - self._polled_first_seconds < _STABLE_SECONDS

    async def _judge(self, content: bytes | str) -> None:
        """Put the content into force if all of it is valid. Otherwise keep the last good policy in force."""
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
            self._applied, self._applied_file = content, _number_of(self._path)
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


def _number_of(path: Path) -> int:
    """Return the number of the file (inode), or 0 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0
