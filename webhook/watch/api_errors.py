"""The errors of requests to an API server."""


class ApiServerError(Exception):
    """A request to the API server failed. `code` is the HTTP status, 0 if there is none.

    `causes` are the machine-readable causes of the Status, such as `NamespaceTerminating`.
    """

    def __init__(self, message: str, code: int = 0, causes: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.code = code
        self.causes = causes


class TooLargeError(ApiServerError):
    """The response is larger than the caller reads."""


class UnreachableError(ApiServerError):
    """The API server did not respond to a request."""
