"""The bearer token of the admin port, read from a file."""

import hmac
from contextlib import suppress
from pathlib import Path

from webhook.documents.field import InvalidInput, invalid

_MOST_BYTES = 4096
_FLAG = "--admin-token-file"


class BearerToken:
    """The token in the file `path`. The file is read at each request, because a mounted Secret can change.

    Raises:
        InvalidInput: the file cannot be read, or holds no token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = read_token(path)

    def allows(self, authorization: str) -> bool:
        """Return whether the header has the token, the last valid one while the file is invalid."""
        with suppress(InvalidInput):
            self._token = read_token(self._path)
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token)


def read_token(path: Path) -> bytes:
    """Return the token in the file at `path`.

    Raises:
        InvalidInput: the file cannot be read, or holds no token.
    """
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_BYTES + 1).strip()
    except OSError as error:
        raise InvalidInput([invalid(_FLAG, str(path), f"cannot be read: {error.strerror}")]) from error
    if not token or len(token) > _MOST_BYTES or len(token.split()) > 1:
        raise InvalidInput([invalid(_FLAG, str(path), f"must hold one token of at most {_MOST_BYTES} bytes")])
    return token
