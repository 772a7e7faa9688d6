"""The events of the logs are listed in docs/monitoring.md."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import ROOT, rows, span_of

PAGE = ROOT / "docs" / "monitoring.md"
METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
FILES = sorted(path for package in ("webhook", "certs") for path in (ROOT / package).rglob("*.py"))


def texts_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def logged_in(path: Path) -> Iterator[str]:
    """Yield the events that a module logs by their names; others pass a variable."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)) if "structlog" in source else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        logger, event = ast.unparse(node.func.value), node.args[0]
        is_log = logger.rpartition(".")[2] in ("log", "_log") or logger.endswith("get_logger()")
        if is_log and node.func.attr in METHODS and isinstance(event, ast.Constant) and isinstance(event.value, str):
            yield event.value


def documented() -> list[str]:
    return [span_of(row[0]) or row[0] for row in rows(PAGE, "Logs")]


def test_every_event_is_documented() -> None:
    logged = {event for path in FILES for event in logged_in(path)}

    assert len(logged) > 30
    assert logged - set(documented()) == set()


def test_documented_events_are_in_the_code() -> None:
    texts = {text for path in FILES for text in texts_of(path)}

    assert [event for event in documented() if event not in texts] == []
    assert len(set(documented())) == len(documented())
