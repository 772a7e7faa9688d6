"""The built-in profiles with the settings of a policy."""

from tests.support.admission import policy_with
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.profiles.policy_profiles import profiles_for
from webhook.placement.profiles.profile import PROFILES
from webhook.placement.scheduler import Scheduler

_GIB = 2**30


def test_mix_of_the_policy_is_that_of_the_plugin() -> None:
    entries = [
        {"cpu": "500m", "memory": "1Gi", "cards": 1, "weight": 3},
        {"cpu": "0.5", "memory": 1073741824, "cards": 1, "weight": 4},
        {"cards": 8},
        {"resource": "amd.com/gpu", "cpu": 64, "cards": 8},
    ]

    args = profiles_for(policy_with(packGpus={"mix": entries}).spec)["pack-gpus"].args

    assert args.cards.mixes == {
        "nvidia.com/gpu": {(500, _GIB, 1): 7, (0, 0, 8): 1},
        "amd.com/gpu": {(64000, 0, 8): 1},
    }


def test_built_in_policy_has_the_built_in_profiles() -> None:
    assert profiles_for(policy_with().spec) == PROFILES


def test_cards_are_those_of_the_policy() -> None:
    accelerators = [{"name": "mine", "resources": ["example.com/card"], "card": "example.com/card"}]

    args = profiles_for(policy_with(accelerators=accelerators).spec)["pack-gpus"].args

    assert args.cards.resources == ("example.com/card",)


def test_profile_keeps_nodes_for_the_pods_of_the_policy_before_one_runs() -> None:
    """Both nodes are of one kind to the default mix; only one has the memory of the policy's large pods."""
    gpus = {"nvidia.com/gpu": 8}
    nodes = Snapshot.of([node("a", capacity=gpus | {"memory": "2Ti"}), node("b", capacity=gpus | {"memory": "1Ti"})])
    pod = make_pod().gpu(8).obj()
    large = policy_with(packGpus={"mix": [{"memory": "2Ti", "cards": 8}, {"cards": 8}]})

    assert Scheduler(profiles_for(large.spec)["pack-gpus"]).place(pod, nodes).node == "b"
