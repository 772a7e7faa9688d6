"""A KubeSchedulerConfiguration that says nothing has kube-scheduler's defaults."""

from webhook.placement.config.scheduler_configuration import Extender, KubeSchedulerConfiguration, ManagedResource

_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def test_fields_that_are_not_given_have_kube_scheduler_s_defaults() -> None:
    """Source: k8s.io/kubernetes/pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration"""
    assert KubeSchedulerConfiguration.model_validate(_HEAD).model_dump(by_alias=True) == _HEAD | {
        "parallelism": 16,
        "leaderElection": {},
        "clientConnection": {},
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": None,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "profiles": (),
        "extenders": (),
        "delayCacheUntilActive": False,
    }


def test_extender_that_says_nothing_is_asked_nothing() -> None:
    extender = Extender()
    assert (extender.filter_verb, extender.preempt_verb, extender.prioritize_verb, extender.bind_verb) == ("",) * 4
    assert extender.weight == 0
    assert not extender.enable_https
    assert not extender.node_cache_capable
    assert not extender.ignorable
    assert not ManagedResource(name="example.com/gpu").ignored_by_scheduler
