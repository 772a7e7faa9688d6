"""The names of images."""

import pytest

from webhook.cluster.index.images import normalized_image_name


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1", "registry:5000/nginx:1"),
    ],
)
def test_image_names_have_a_tag(name: str, normalized: str) -> None:
    assert normalized_image_name(name) == normalized
