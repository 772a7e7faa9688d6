"""The mutations of a module, and the changes that are left out because they are equivalent."""

from textwrap import dedent

import pytest

from tests.mutants.finding import change, find_mutants, package_of


def faults(source: str) -> set[str]:
    source = f"{dedent(source)}\n"
    return {change(source, mutant.code(source))[1] for mutant in find_mutants("webhook/module.py", source)}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("if a and b: pass", "if a or b: pass"),
        ("if a: pass", "if not a: pass"),
        ("x = not a", "x =  a"),
        ("x = a == b", "x = a != b"),
        ("x = a == b", "x = a > b"),
        ("x = a < 5", "x = a <= 5"),
        ("x = a < 5", "x = a < 6"),
        ("x = a in b", "x = a not in b"),
        ("x = a not in b", "x = a in b"),
        ("x = a is None", "x = a is not None"),
        ("x = a + b", "x = a - b"),
        ("x = a | b", "x = a & b"),
        ("x += 1", "x -= 1"),
        ("x = True", "x = False"),
        ("x = min(a, b)", "x = max(a, b)"),
        ("x = any(a)", "x = all(a)"),
        ("x = -a", "x = a"),
        ("memory.clear()", "pass"),
        ("for a in b: pass", "for a in []: pass"),
        ("try: a\nexcept OSError: b", "except CosmicRayTestingException: b"),
        ("try: a\nexcept (OSError): b", "except (CosmicRayTestingException): b"),
        ("try: a\nexcept (OSError, ValueError): b", "except (OSError, CosmicRayTestingException): b"),
        ("try: a\nexcept module.Error as e: b", "except CosmicRayTestingException as e: b"),
        ("try: a\nexcept (module.Error, OSError): b", "except (CosmicRayTestingException, OSError): b"),
    ],
)
def test_fault_is_tried(line: str, fault: str) -> None:
    assert fault in faults(line)


@pytest.mark.parametrize(
    "source",
    [
        "x: int | None = y",
        "def f(a: int | None, *b: int, **c: int) -> int | None: ...",
        "def f(a, *, b): ...",
        "Alias = Large | Small",
        "x = isinstance(a, int | str)",
        "from module import *",
        "x = {**a, **b}",
        "x = zip(a, b, strict=True)",
        "@dataclass(frozen=True, slots=True)\nclass A:\n    a: int",
        "class A(Struct, gc=False):\n    a: int",
        "class Speaker(Protocol):\n    def speak(self, loud=True): ...",
        "if TYPE_CHECKING:\n    x = 1 + 1",
        '"""Text of 3 lines."""',
    ],
)
def test_what_is_no_fault_is_left_out(source: str) -> None:
    assert faults(source) == set()


def test_every_mutant_of_a_module_compiles_and_differs_from_it() -> None:
    source = dedent(
        """
        def f(values, limit=3):
            try:
                for value in values:
                    if value is None or value >= limit:
                        continue
                    total += -value * 2
                    memory.append(value)
            except (OSError, ValueError) as error:
                raise KeyError(error) from error
            return max(total, 0) if not memory else total // 2
        """
    )
    mutants = [mutant.code(source) for mutant in find_mutants("webhook/module.py", source)]

    for mutant in mutants:
        compile(mutant, "module.py", "exec")
    assert len(mutants) > 20
    assert len({*mutants, source}) == len(mutants) + 1


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("webhook/__main__.py", "webhook"),
        ("webhook/kube/cel/parser.py", "webhook/kube"),
        ("certs/pki.py", "certs"),
        ("certs/cluster/probe.py", "certs"),
    ],
)
def test_a_module_counts_for_its_first_folder(path: str, package: str) -> None:
    assert package_of(path) == package
