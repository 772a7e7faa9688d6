"""What the API server adds to a pod before the webhooks, and what it refuses, in its words."""

import pytest

from tests.admission.api_server.completing import KATA, of, view
from webhook.documents.field import InvalidInput


def test_malformed_pods_are_errors() -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        of(view(KATA), containers=[1], runtimeClassName="kata")
