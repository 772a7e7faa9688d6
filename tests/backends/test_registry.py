"""The table of the backends."""

from typing import get_args

from tests.backends.requests import WRITTEN
from webhook.backends.registry import BACKENDS
from webhook.policy.spec.schedulers import BackendName


def test_the_policy_can_name_every_backend_but_kueue() -> None:
    assert set(get_args(BackendName)) == set(BACKENDS) - {"kueue"}


def test_the_table_has_every_backend() -> None:
    assert WRITTEN.keys() == BACKENDS.keys()
