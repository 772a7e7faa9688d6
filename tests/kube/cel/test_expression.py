"""Selectors of devices, evaluated."""

import tracemalloc

import pytest

from tests.kube.cel.device_selectors import DEVICE, holds
from tests.support.work import calls_of
from webhook.kube.cel import expression
from webhook.kube.cel.expression import Expression, compiled
from webhook.kube.cel.syntax import MOST_TOKENS

_OWN = 'device.attributes["gpu.example.com"]'
_MEMORY = 'device.capacity["gpu.example.com"].memory'


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        "device.driver == 'gpu.example.com' // a remark",
        f'{_OWN}.model == "NVIDIA A100"',
        f'{_OWN}["model"] != "H100"',
        f"{_OWN}.fast",
        f"{_OWN}.numa in [1, 2, 3]",
        f"{_OWN}.numa == 3u",
        f"{_OWN}.numa > 2.5 && {_OWN}.numa <= 0x3",
        f"-{_OWN}.numa < -2",
        f'{_OWN}.numa != "3"',
        f'"model" in {_OWN} && !("colour" in {_OWN})',
        '"other.example.com" in device.attributes && !("none.example.com" in device.attributes)',
        '!("x" in device.attributes["none.example.com"])',
        f"has({_OWN}.model) && !has({_OWN}.colour)",
        f"has({_OWN}.colour) ? {_OWN}.colour == 1 : true",
        f'{_OWN}.model.startsWith("NV") && {_OWN}.model.endsWith("100") && {_OWN}.model.contains(" A")',
        f'{_OWN}.model.lowerAscii() == "nvidia a100" && "a".upperAscii() == "A" && {_OWN}.model.size() == 11',
        f'{_OWN}.model.matches("^NVIDIA (A|H)10+$") && {_OWN}.model.matches("(?i)a1[0-9]+") && size("ab") == 2',
        r"""'a"b' == "a\"b" && r'\d' == "\\d" && "1".matches(r"\d")""",
        f'{_OWN}.model.matches("(A+)+") && {_OWN}.model.matches(".*A.*1.*0")',
        f'{_OWN}.model.matches("(N|H)(V|A)(I|1)") && {_OWN}.model.matches("^(?:NVIDIA|AMD) ")',
        f'{_OWN}.model.matches("100$") && !{_OWN}.model.matches("(?i)^nvidia$") && "a\\n".matches("a$") == false',
        r"""'节'.matches('^.$') && 'é'.matches('(?i)É') && '١'.matches(r'\d') == false && 'a'.matches(r'^\Qa\E\z')""",
        f'{_MEMORY}.compareTo(quantity("80Gi")) == 0 && {_MEMORY} == quantity("81920Mi")',
        f'{_MEMORY}.isGreaterThan(quantity("79Gi")) && {_MEMORY}.isLessThan(quantity("81Gi"))',
        f'{_OWN}.driver.isGreaterThan(semver("1.9.9")) && {_OWN}.driver.major() == 1 && {_OWN}.driver.minor() == 10',
        f'{_OWN}.driver == semver("1.10.0+build") && {_OWN}.driver.compareTo(semver("1.10.0-rc.1")) > 0',
        f"cel.bind(own, {_OWN}, own.numa == 3 && own.fast)",
        f"cel.bind(none, {_OWN}.colour, {_OWN}.fast)",
        f"cel.bind(device, {_OWN}, device.fast)",
        f'{_OWN}.colour == "red" || true',
        f'!(false && {_OWN}.colour == "red")',
        'null == null && !("a" == null)',
        '"a" < "b" && "a" <= "a"',
    ],
)
def test_selector_that_takes_the_device(expression: str) -> None:
    assert holds(expression) is True
    assert holds(f"!({expression.partition(' // ')[0]})") is False


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f'{_OWN}.colour == "red"', id="kube-scheduler gets an error: no such attribute"),
        pytest.param(f'{_OWN}.colour == "red" || false', id="an error that nothing makes up for"),
        pytest.param(f"{_OWN}.model", id="no boolean"),
        pytest.param(f"{_OWN}.model && true", id="no boolean in a conjunction"),
        pytest.param(f'{_OWN}.model > 3 || {_MEMORY}.isLessThan("1Gi")', id="types apart"),
        pytest.param(f'{_MEMORY}.isGreaterThan(quantity("much"))', id="no quantity"),
        pytest.param(f'{_OWN}.driver.isGreaterThan(semver("v1"))', id="no version"),
        pytest.param(f'device.attributes.exists(name, name == "x") || {_OWN}.numa == 4', id="macro"),
        pytest.param(f"{_OWN} == {_OWN}", id="mappings compared"),
        pytest.param(f'{_MEMORY} == "80Gi"', id="quantity compared with a text"),
        pytest.param(f'{_OWN}.driver != "1.10.0"', id="version compared with a text"),
        pytest.param(f"{_OWN}.numa + 1 == 4", id="arithmetic"),
        pytest.param(f'{_OWN}.?model.orValue("") == ""', id="optional value"),
        pytest.param("has(device.attributes.foo)", id="presence of a domain"),
        pytest.param(f'{_OWN}.model.matches("(?=N)")', id="pattern that RE2 has not"),
        pytest.param(f'{_OWN}.model.matches("(N")', id="no pattern"),
        pytest.param(rf"{_OWN}.model.matches(r'\C')", id="pattern of a byte, which Go has not"),
        pytest.param(f'{_OWN}.model.matches("N{{1001}}")', id="pattern that repeats too often"),
        pytest.param(f'{_OWN}.model.matches("{"N{1000}" * 3}")', id="pattern that takes much memory"),
        pytest.param(f'"{"a" * 65}".matches("a")', id="text longer than an attribute"),
        pytest.param('"""a""" == "a"', id="text in three quotes"),
        pytest.param('"\\u0041" == "A"', id="escape"),
        pytest.param("99999999999999999999 > 1", id="beyond an integer"),
        pytest.param("device.driver ==", id="no expression"),
        pytest.param("", id="nothing"),
        pytest.param("pod.name == 'a'", id="no such variable"),
    ],
)
def test_selector_without_an_answer(expression: str) -> None:
    assert holds(expression) is None


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("!" * 10_000 + "true", id="deep"),
        pytest.param("(" * 5_000 + "true" + ")" * 5_000, id="parentheses"),
        pytest.param("true" + " && true" * 1_000, id="long"),
        pytest.param("[" * 3_000 + "]" * 3_000 + " == []", id="lists in lists"),
        pytest.param("true || " * 2_000 + "true", id="too long"),
        pytest.param(
            "cel.bind(a0, true, " + "".join(f"cel.bind(a{n + 1}, a{n} && a{n}, " for n in range(50)) + "a50" + ")" * 51,
            id="variables that double",
        ),
        pytest.param(f'{"a" * 60!r}.matches("[a-z]*[a-z]*1")', id="pattern"),
        pytest.param(f'{"a" * 60!r}.matches("{"(a|a)" * 24}1")', id="pattern of alternatives"),
    ],
)
def test_hostile_selector_takes_few_steps(expression: str) -> None:
    """At most a hundred calls for each character that an expression may have."""
    holds("true")  # loads the parser
    assert calls_of(lambda: Expression(expression).holds({"device": DEVICE})) < 100 * 10 * 1024


@pytest.mark.slow
def test_compiled_expressions_take_a_bounded_memory() -> None:
    """The largest that each cache may hold, measured, times their number."""
    tracemalloc.start()
    try:
        compiled("true")
        total = 0
        for cache, length in ((expression._short, expression._LONGEST_SHORT), (expression._long, expression._LONGEST)):
            text = "&&".join(["a.b==1"] * min(length // 8, MOST_TOKENS // 6))
            before = tracemalloc.get_traced_memory()[0]
            kept = expression.Expression(text)
            total += (tracemalloc.get_traced_memory()[0] - before) * (cache.cache_info().maxsize or 0)
            assert kept.size > 1
    finally:
        tracemalloc.stop()
    assert total < 40 * 2**20
