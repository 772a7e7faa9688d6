"""Parts of the answer for the pods of a template."""

import pytest

from webhook.cli.predictions.answer_parts import with_missing_kinds
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import NOT_MODELLED


@pytest.mark.parametrize(
    ("kinds", "message"),
    [((), f"{NOT_MODELLED}."), (("Service", "ReplicaSet"), f"{NOT_MODELLED}: grant list of Service, ReplicaSet.")],
)
def test_the_message_names_the_remedy_for_missing_kinds(kinds: tuple[str, ...], message: str) -> None:
    found = with_missing_kinds(Placement.unknown(f"{NOT_MODELLED}."), kinds, "grant list of {kinds}")

    assert found.message == message
