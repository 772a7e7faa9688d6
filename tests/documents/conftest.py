"""The document reader, as it is where PyYAML was built without libyaml."""

import importlib.util
import sys
from types import ModuleType

import pytest
import yaml

from webhook.documents import documents


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is where PyYAML was built without libyaml."""
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    spec = importlib.util.spec_from_file_location("documents_without_libyaml", documents.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module
