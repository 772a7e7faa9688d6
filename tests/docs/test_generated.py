"""The generated files are current."""

from types import ModuleType

import pytest

from tools.__main__ import GENERATORS


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: str(generator.__name__))
def test_files_are_current(generator: ModuleType) -> None:
    found = generator.files()

    assert {path: path.read_text() for path in found} == found, "run `make docs`"
