"""Tests, laid out as the packages are."""

import pkgutil

import pytest

# A failed assertion in a module that tests share shows what it compared, too.
pytest.register_assert_rewrite(*(f"{__name__}.{each.name}" for each in pkgutil.iter_modules(__path__)))
