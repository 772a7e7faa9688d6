"""The resources that are listed and watched."""

import pytest

from webhook.cluster.cache.resources import REQUIRED_RESOURCES, RESOURCES, Resource


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (REQUIRED_RESOURCES[-1], "/api/v1/pods"),
        (Resource("ReplicaSet", "apps/v1", "replicasets"), "/apis/apps/v1/replicasets"),
        (Resource("Queue", "scheduling.run.ai/v2", "queues"), "/apis/scheduling.run.ai/v2/queues"),
    ],
)
def test_a_resource_is_listed_at_the_path_of_its_group(resource: Resource, path: str) -> None:
    assert resource.path == path


def test_kinds_of_one_name_have_different_names_in_the_cache() -> None:
    names = [each.name_in_cache for each in RESOURCES]

    assert len({*names}) == len(names) > len({each.kind for each in RESOURCES})
