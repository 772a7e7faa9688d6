"""Other names by which pods request cards."""

import pytest

from webhook.kube.pod.card_names import CARD_BY_OTHER_NAME, is_share, may_be_share


@pytest.mark.parametrize(
    ("resource", "card", "share"),
    [
        ("volcano.sh/vgpu-number", "nvidia.com/gpu", False),
        ("nvidia.com/gpumem-percentage", "nvidia.com/gpu", True),
        ("cambricon.com/mlu.smlu.vcore", "cambricon.com/mlu", True),
        ("huawei.com/Ascend910-memory", None, True),
        ("huawei.com/Ascend910", None, False),
        ("nvidia.com/gpu", None, False),
    ],
)
def test_a_name_is_of_cards_or_of_a_share_of_one(resource: str, card: str | None, share: bool) -> None:
    assert (CARD_BY_OTHER_NAME.get(resource), is_share(resource)) == (card, share)


def test_defaults_of_hami_may_be_shares() -> None:
    names = [name for name in CARD_BY_OTHER_NAME if is_share(name) and not name.startswith("cambricon.com/mlu.")]

    assert [name for name in names if not may_be_share(name)] == []


@pytest.mark.parametrize("resource", ["memory", "example.kubernetes.io/gpumem", "example.com/gpu"])
def test_other_resources_are_no_shares(resource: str) -> None:
    assert not may_be_share(resource)
