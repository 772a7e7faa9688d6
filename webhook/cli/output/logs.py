"""Structured logs of the server on standard error."""

import io
import logging
import sys
from typing import TextIO

import structlog

from webhook.cli.output.terminal import may_colour
from webhook.documents.text import printable, printable_lines

# Without the values of variables, because the environment of a pod must not be logged.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def _printable_values(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _printable_traceback(output: TextIO, error: structlog.typing.ExcInfo) -> None:
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, error)
    output.write(printable_lines(plain.getvalue()))


def configure_logs(log_format: str, level: str) -> None:
    """Log from `level` up, as text or as one JSON object a line. With `auto`, text is used on a terminal."""
    as_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    renderers: list[structlog.typing.Processor] = (
        [
            _printable_values,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty() and may_colour(), exception_formatter=_printable_traceback
            ),
        ]
        if as_text
        else [_TRACEBACKS, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
