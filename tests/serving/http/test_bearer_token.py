"""With a token file, the admin port needs the token for everything but the probes of the kubelet."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.support.servers.server import World, running
from webhook.documents.field import InvalidInput
from webhook.serving.http.bearer_token import BearerToken


def statuses(folder: Path, *authorizations: str | None) -> list[int]:
    (folder / "token").write_text("s3cret\n")

    async def run() -> list[int]:
        found = []
        async with (
            running(World(), folder, admin_token_file=folder / "token") as server,
            aiohttp.ClientSession() as session,
        ):
            for path in ("/healthz", "/readyz"):
                async with session.get(server.admin_url + path) as response:
                    assert response.status == 200
            for each in authorizations:
                headers = {} if each is None else {"Authorization": each}
                async with session.get(f"{server.admin_url}/metrics", headers=headers) as response:
                    found.append(response.status)
        return found

    return asyncio.run(run())


def test_metrics_need_the_token_and_probes_do_not(tmp_path: Path) -> None:
    given = (None, "Bearer s3cret", "bearer  s3cret", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "")

    assert statuses(tmp_path, *given) == [401, 200, 200, 401, 401, 401, 401, 401]


def test_a_changed_token_counts_at_once_and_a_bad_file_leaves_the_last(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    token = BearerToken(path)

    path.write_text("two")
    assert (token.allows("Bearer one"), token.allows("Bearer two")) == (False, True)
    path.write_text("")
    assert token.allows("Bearer two")
    path.unlink()
    assert (token.allows("Bearer two"), token.allows("Bearer "), token.allows("Bearer")) == (True, False, False)


@pytest.mark.parametrize("content", [None, "", " \n", "two words", "x" * 5000], ids=str)
def test_a_file_without_one_token_is_an_error(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)

    with pytest.raises(InvalidInput, match="--admin-token-file: Invalid value"):
        BearerToken(path)
