"""The scheduler that predicts the node of a pod, by its schedulerName."""

from tests.placement.batch_profiles.batch_clusters import sized_node
from tests.support.objects.builders import make_pod
from tests.support.views import made_anew
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.profiles.profile import BINPACK
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.policy.spec.schedulers import SchedulerSettings


def test_scheduler_of_a_pod_is_that_of_the_backend_of_its_name() -> None:
    settings = {"mine": SchedulerSettings(backend="volcano"), "volcano": SchedulerSettings(backend="default")}
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, settings)
    snapshot = made_anew([sized_node("a")])

    def words(scheduler: str) -> str:
        pod = make_pod().requests(cpu="1").node_selector("pool", "x").scheduler(scheduler).obj()
        return schedulers.answer(PodSignature.of(pod), snapshot).message.partition(": 1")[0]

    available = "0/1 nodes are available"
    assert [words("mine"), words("volcano"), words("default-scheduler"), words("other")] == [
        "0/1 nodes are unavailable",
        available,
        available,
        available,
    ]
    assert words("kai-scheduler") == "no nodes with enough resources were found"


def test_names_of_one_backend_share_a_scheduler_and_its_cache() -> None:
    settings = {name: SchedulerSettings(backend="volcano") for name in ("x", "y")}
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, settings)
    assert schedulers.by_name["x"] is schedulers.by_name["y"] is schedulers.by_name["volcano"]
    assert len(schedulers.caches) == 3 * len(Scheduler().caches)
    assert len({id(cache) for cache in schedulers.caches}) == len(schedulers.caches)


def test_profile_of_the_configuration_wins_over_that_of_the_backend_of_its_name() -> None:
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, {}, {"volcano": BINPACK, "mine": BINPACK})

    found = {name: schedulers.by_name[name].profile.name for name in ("volcano", "mine", "kai-scheduler")}
    assert found == {"volcano": "binpack", "mine": "binpack", "kai-scheduler": "kai"}
