"""The name of the configuration that exists, and the addresses that the webhooks call."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from jsonpatch import apply_patch

from placement_doctor import commands
from placement_doctor.source import Source
from tests.doctor.healthy import (
    CONFIGURATION,
    NAMESPACE,
    commands_of,
    configuration,
    deployment,
    found,
    make_installation,
    named,
    objects,
    read_of,
    slices,
    texts,
)
from tests.support.objects.manifests import Object

PLACE = f"MutatingWebhookConfiguration {CONFIGURATION}"
PATCHED = ["kubectl", "-n", NAMESPACE, "patch", "service", "placement-webhook", "--type=json", "-p"]


def test_the_configuration_that_exists_is_the_one_with_our_webhooks() -> None:
    istio = {**named("0-istio"), "webhooks": [{"name": "sidecar.istio.io"}]}
    others = read_of(Source.CONFIGURATIONS, istio, configuration())
    installation = replace(others, target=replace(others.target, configuration="mine"))

    (finding,) = found(installation, "installed")

    assert finding.what.endswith(f"the cluster has 0-istio, {CONFIGURATION}")
    assert finding.remedy == f"`--configuration={CONFIGURATION}` names the one that exists"


def service_with(*ports: Object) -> Object:
    (made,) = objects()[Source.SERVICE]
    return {**made, "spec": {**made["spec"], "ports": list(ports)}}


@pytest.mark.parametrize(
    ("ports", "operation"),
    [
        ([{"port": 8443}], '[{"op":"add","path":"/spec/ports/0/port","value":443}]'),
        (
            [{"name": "a", "port": 8443}, {"name": "b", "port": 80}],
            '[{"op":"add","path":"/spec/ports/-","value":{"name":"port-443","port":443}}]',
        ),
        (
            [{"name": "a", "port": 80}, {"name": "b", "port": 443, "targetPort": "tls"}],
            '[{"op":"add","path":"/spec/ports/1/targetPort","value":"https"}]',
        ),
    ],
    ids=["the only port is changed", "a port with a name is added", "the target of the port is changed"],
)
def test_the_port_that_the_webhooks_call_is_mended_in_the_service(ports: list[Object], operation: str) -> None:
    (finding,) = found(read_of(Source.SERVICE, service_with(*ports)), "service")

    assert commands_of(finding.remedy) == [[*PATCHED, operation]]


@pytest.mark.parametrize("target", [8443, "https", None])
def test_a_target_port_is_a_number_or_the_name_of_a_port_of_the_servers(target: int | str | None) -> None:
    assert found(read_of(Source.SERVICE, service_with({"port": 443, "targetPort": target})), "service") == []


@pytest.mark.parametrize(
    ("remedies", "shown"),
    [
        (["kubectl a", "ask the owner", "kubectl a"], "`kubectl a`; ask the owner; "),
        (["kubectl a", "kubectl b", "kubectl c", "kubectl d"], "`kubectl a`; `kubectl b`; `kubectl c`; "),
    ],
)
def test_missed_pods_have_each_remedy_once_and_commands_as_such(remedies: list[str], shown: str) -> None:
    missed = tuple(SimpleNamespace(namespace="a", name=f"p{n}", remedy=each) for n, each in enumerate(remedies))

    (finding,) = found(make_installation(missed=missed, missed_count=len(missed)), "missed-pods")

    assert finding.remedy == f"{shown}`placement-webhook missed` has all of them"
    assert finding.where == "Pods " + ", ".join(f"a/p{n}" for n in range(len(remedies)))


def test_webhooks_that_all_call_another_service_are_named_without_their_port() -> None:
    changed = configuration()
    for webhook in changed["webhooks"]:
        webhook["clientConfig"]["service"]["name"] = "other"

    (finding,) = found(read_of(Source.CONFIGURATIONS, changed), "service")

    places = ", ".join(f"webhooks[{index}].clientConfig.service" for index in range(4))
    own = f"not {NAMESPACE}/placement-webhook"
    assert texts([finding]) == [f"{PLACE}: {places}: calls {NAMESPACE}/other, {own}"]


URL = "https://10.0.0.8:8443/mutate"


@pytest.mark.parametrize("odd", range(4))
@pytest.mark.parametrize("is_url", [True, False], ids=["a URL", "a Service"])
def test_one_webhook_that_calls_a_url_or_a_service_unlike_the_others_is_named(odd: int, is_url: bool) -> None:
    changed = configuration()
    service = {"namespace": NAMESPACE, "name": "placement-webhook", "port": 443, "path": "/mutate"}
    for number, webhook in enumerate(changed["webhooks"]):
        called = {"url": URL} if (number == odd) is is_url else {"service": service}
        webhook["clientConfig"] = {"caBundle": webhook["clientConfig"]["caBundle"], **called}

    (finding,) = (each for each in found(read_of(Source.CONFIGURATIONS, changed), "service"))

    own, others = (URL, f"Service {NAMESPACE}/placement-webhook")[:: 1 if is_url else -1]
    name = changed["webhooks"][odd]["name"]
    where = f"{PLACE}: webhooks[{odd}].clientConfig"
    assert texts([finding]) == [f"{where}: {name} calls {own}, and the others call {others}"]
    ((*_, operations),) = commands_of(finding.remedy)
    patched = apply_patch(changed, operations)
    assert patched["webhooks"][odd]["clientConfig"] == changed["webhooks"][odd - 1]["clientConfig"]


def test_path_and_port_of_one_webhook_are_two_findings_in_the_order_of_the_manifest() -> None:
    changed = configuration()
    changed["webhooks"][3]["clientConfig"]["service"] |= {"port": 8443, "path": "/mutat"}

    findings = found(read_of(Source.CONFIGURATIONS, changed), "service")

    assert [each.where.rpartition(".")[2] for each in findings] == ["port", "path"]


@pytest.mark.parametrize(
    ("ports", "addresses"),
    [
        ([{"name": "https", "port": 8443}], ["10.1.0.1:8443", "10.1.0.2:8443"]),
        ([{"name": "any"}, {"name": "https", "port": 8443}], ["10.1.0.1:8443", "10.1.0.2:8443"]),
        ([{"name": "any"}], []),
    ],
    ids=["a port", "a port without a number and a port", "a port without a number"],
)
def test_endpoints_are_called_at_the_first_port_with_a_number(
    ports: list[dict[str, Any]], addresses: list[str]
) -> None:
    (own,) = slices()

    assert read_of(Source.ENDPOINTS, {**own, "ports": ports}).ready_addresses == addresses


@pytest.mark.parametrize(
    ("args", "overlay"),
    [((), "deploy/base"), (("--policy-source=crd",), "deploy/overlays/crd")],
    ids=["certificates of a person", "policies as objects"],
)
def test_a_missing_service_is_applied_with_the_manifests_of_this_installation(
    args: tuple[str, ...], overlay: str
) -> None:
    servers = deployment()
    servers["spec"]["template"]["spec"]["containers"][0]["args"] += args
    read = {**objects(), Source.SERVICE: (), Source.DEPLOYMENTS: (servers,)}

    (finding,) = found(make_installation(objects=read), "service")

    assert commands_of(finding.remedy) == [["kubectl", "apply", "-k", overlay]]


def with_urls(*odd: int) -> Object:
    """Return the configuration in which these webhooks call a URL."""
    made = configuration()
    for index in odd:
        made["webhooks"][index]["clientConfig"] = {"url": URL}
    return made


@pytest.mark.parametrize("odd", range(4))
def test_commands_for_servers_behind_a_service_name_no_url_of_one_webhook(odd: int) -> None:
    assert "--url" not in commands.registered(read_of(Source.CONFIGURATIONS, with_urls(odd)))


@pytest.mark.parametrize("own", range(4))
def test_a_service_that_only_one_webhook_calls_need_not_exist(own: int) -> None:
    read = {Source.CONFIGURATIONS: (with_urls(*({0, 1, 2, 3} - {own})),), Source.SERVICE: ()}

    (finding,) = found(make_installation(objects={**objects(), **read}), "service")

    assert finding.what.endswith(f"calls Service {NAMESPACE}/placement-webhook, and the others call {URL}")


def test_a_webhook_that_calls_a_url_gets_the_port_that_most_others_call() -> None:
    changed = with_urls(3)
    changed["webhooks"][0]["clientConfig"]["service"]["port"] = 8443

    of_url, _ = found(read_of(Source.CONFIGURATIONS, changed), "service")

    ((*_, operations),) = commands_of(of_url.remedy)
    patched = apply_patch(changed, operations)["webhooks"]
    assert patched[3]["clientConfig"]["service"] == patched[1]["clientConfig"]["service"]
