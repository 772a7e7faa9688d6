"""The console answers its own page only, and its page loads nothing of others."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
import pytest

from placement_console import application
from placement_console.application import Worker, post_limit, static_files
from placement_console.guard import is_loopback, refusal
from tests.console.served import console_of
from webhook.runtime.token_bucket import TokenBucket

_OWN = "127.0.0.1:8090"


@pytest.mark.parametrize("host", [_OWN, "localhost:8090", "[::1]:12345", "127.0.0.2"])
def test_a_request_to_a_loopback_name_is_answered(host: str) -> None:
    assert refusal(host, f"http://{host}", "same-origin") == ""


@pytest.mark.parametrize(
    ("host", "origin", "site"),
    [
        pytest.param("evil.example:8090", None, None, id="a name that resolves to loopback"),
        pytest.param("127.0.0.1.evil.example", None, None, id="a name like an address"),
        pytest.param("10.0.0.1:8090", None, None, id="another address"),
        pytest.param("[::1", None, None, id="no host at all"),
        pytest.param("", None, None, id="no host"),
        pytest.param(_OWN, "http://evil.example", None, id="the page of another site"),
        pytest.param(_OWN, "http://127.0.0.1:9999", None, id="another server of this machine"),
        pytest.param(_OWN, "null", None, id="a file or a sandboxed frame"),
        pytest.param(_OWN, None, "cross-site", id="an image of another site"),
        pytest.param(_OWN, None, "same-site", id="another port of this machine"),
    ],
)
def test_a_request_of_another_site_is_refused(host: str, origin: str | None, site: str | None) -> None:
    assert refusal(host, origin, site) != ""


def test_only_loopback_can_be_listened_on() -> None:
    assert [
        each for each in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.1.2.3", "node-1") if is_loopback(each)
    ] == [
        "127.0.0.1",
        "::1",
        "localhost",
    ]


def _answers(*requests: tuple[str, str, Mapping[str, str]]) -> list[tuple[int, Mapping[str, str], bytes]]:
    """Return status, headers and body of each request (method, path, headers) to one console."""

    async def ask() -> list[tuple[int, Mapping[str, str], bytes]]:
        found: list[tuple[int, Mapping[str, str], bytes]] = []
        async with console_of() as address, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            for method, path, headers in requests:
                async with session.request(method, address + path, headers=headers) as response:
                    found.append((response.status, response.headers, await response.read()))
        return found

    return asyncio.run(ask())


def test_every_answer_limits_what_the_page_may_load_and_sets_no_cookie() -> None:
    answers = _answers(("GET", "/", {}), ("GET", "/app.js", {}), ("GET", "/api/node?name=x", {}), ("GET", "/none", {}))

    assert [status for status, *_ in answers] == [200, 200, 404, 404]
    for _, headers, _ in answers:
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in headers


def test_other_methods_and_other_hosts_are_refused() -> None:
    own: dict[str, Any] = {}
    answers = _answers(
        ("POST", "/api/node", {"Origin": "http://evil.example"}),
        ("POST", "/api/node", own),
        ("DELETE", "/api/node", own),
        ("GET", "/api/events", {"Host": "evil.example"}),
        ("GET", "/api/../../pod_facts.py", own),
    )

    assert [status for status, *_ in answers] == [403, 403, 405, 403, 404]


def test_requests_with_a_body_are_limited() -> None:
    limit = post_limit(0.0)

    waits = [limit.take(0.0) for _ in range(11)]

    assert waits == [0.0] * 10 + [2.0]
    assert limit.take(waits[-1]) == 0.0


def test_too_many_requests_with_a_body_are_told_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "post_limit", lambda now_seconds: TokenBucket(1, 1000.0, now_seconds))

    post = ("POST", "/api/try", {"Host": "localhost:1", "Origin": "http://localhost:1"})
    (first, *_), (status, headers, body) = _answers(post, post)

    assert (first, status, headers["Retry-After"]) == (422, 429, "1000")
    assert body == b'{"errors":["too many requests; try again in a few seconds"]}'


def test_the_front_end_is_small_and_has_no_inline_script_or_style() -> None:
    files = {path: file.read_text() for path, file in static_files().items()}

    assert sum(map(len, files.values())) <= 300 * 1024
    assert "<style" not in files["index.html"]
    assert files["index.html"].count("<script") == files["index.html"].count('<script type="module" src=')


@pytest.mark.parametrize(
    "name", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"]
)
def test_no_module_makes_html_or_loads_from_others(name: str) -> None:
    modules = {path: file.read_text() for path, file in static_files().items() if path.endswith(".js")}
    # lib/dom.js creates SVG elements by the name of their namespace, and says what it avoids.
    texts = {path: text.replace("http://www.w3.org/2000/svg", "") for path, text in modules.items()}
    code = {
        path: "\n".join(line for line in text.splitlines() if not line.startswith("//")) for path, text in texts.items()
    }

    assert [path for path, text in code.items() if name in text] == []


def test_an_answer_that_fails_makes_room_for_the_next() -> None:
    def fail(_: object) -> None:
        raise ValueError("a page failed")

    async def run() -> int:
        worker = Worker()
        try:
            for _ in range(20):
                with pytest.raises(ValueError, match="a page failed"):
                    await worker.run(lambda: fail)
            return await worker.run(lambda: lambda _: 1)
        finally:
            worker.close()

    assert asyncio.run(run()) == 1


def test_an_answer_begins_when_those_before_it_are_there() -> None:
    """So it is about the cluster at that time."""

    async def run() -> list[str]:
        worker, happened = Worker(), list[str]()

        def begin(name: str) -> Callable[[object], None]:
            happened.append(f"{name} begins")
            return lambda _: happened.append(f"{name} ends")

        try:
            await asyncio.gather(*(worker.run(partial(begin, name)) for name in "ab"))
        finally:
            worker.close()
        return happened

    assert asyncio.run(run()) == ["a begins", "a ends", "b begins", "b ends"]
