"""Which browser the tests take, and the pictures."""

from pathlib import Path

import pytest

from tests.console.browser import MissingChromium, find_browser, find_chromium


def path_with(folder: Path, *names: str) -> dict[str, str]:
    for name in names:
        program = folder / name
        program.touch()
        program.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_tests_take_the_browser_without_a_window_and_the_pictures_that_of_users(tmp_path: Path) -> None:
    environ = path_with(tmp_path, "chromium", "chromium-headless-shell")

    assert find_browser(environ, print) == tmp_path / "chromium-headless-shell"
    assert find_chromium(environ, print) == tmp_path / "chromium"


@pytest.mark.parametrize("name", ["chromium", "chromium-browser"])
def test_any_chromium_will_do(tmp_path: Path, name: str) -> None:
    environ = path_with(tmp_path, name)

    assert find_browser(environ, print) == find_chromium(environ, print) == tmp_path / name


def test_without_one_the_remedy_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingChromium, match="apt-get install chromium-headless-shell"):
        find_browser(path_with(tmp_path), print)
