"""Read what is added to an audit file while a server writes it."""

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from webhook.documents.field import InvalidInput, invalid


class FollowedFile:
    """The lines of the file at `path` as they are added; a context manager. After a rotation it reads the new file.

    Raises:
        InvalidInput: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        self._rest = b""

    def new_lines(self) -> list[bytes]:
        """Return the whole lines that were added since the last call, with their line breaks."""
        text = self._rest + self._file.read()
        if self._is_replaced():
            text += self._file.read()
            self._file.close()
            self._file = self._opened()
            text += self._file.read()
        lines = text.splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        return lines

    def _is_replaced(self) -> bool:
        """Return whether another file is at the path; not while there is none."""
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _opened(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            detail = f"cannot be read: {error.strerror or error}"
            raise InvalidInput([invalid("FILE", str(self._path), detail)]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
