"""docs/placement.svg is the picture of what the demo does."""

import pytest

from tests.docs.generators.picture import PICTURE, picture


@pytest.mark.slow
def test_picture_is_current() -> None:
    assert PICTURE.read_text() == picture(), "run `make docs`"
