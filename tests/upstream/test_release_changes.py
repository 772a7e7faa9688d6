"""What a new release changes is found by its sources, and by the modules that cite them."""

from pathlib import Path

import pytest

from tests.upstream.release_changes import (
    ROOT,
    changed_files,
    citations,
    citing_modules,
    gate_defaults,
    of_file,
)

_FIT = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go"


def test_files_that_differ_are_listed_without_tests_and_generated_code(tmp_path: Path) -> None:
    for side, content in (("before", "1"), ("after", "2")):
        for name in ("a/changed.go", "a/changed_test.go", "a/zz_generated.go", "a/testing/x.go", "README.md"):
            path = tmp_path / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (tmp_path / side / "same.go").write_text("same")
    (tmp_path / "after" / "new.go").write_text("")

    assert [*changed_files(tmp_path / "before", tmp_path / "after")] == ["a/changed.go", "new.go"]


def test_a_file_name_alone_is_in_the_folder_of_the_citation_before_it() -> None:
    text = "Source: k8s.io/kubernetes/pkg/x/one.go and two.go; helper/three.go, four"

    assert citations(text) == {"k8s.io/kubernetes/pkg/x/one.go", "k8s.io/kubernetes/pkg/x/two.go", "helper/three.go"}


@pytest.mark.slow
def test_a_changed_plugin_leads_to_the_module_that_models_it() -> None:
    assert "webhook/placement/plugins/node_resources_fit.py" in of_file(_FIT, citing_modules(ROOT))
    assert of_file("k8s.io/kubernetes/pkg/scheduler/nowhere.go", citing_modules(ROOT)) == []


def test_the_newest_default_of_a_gate_counts() -> None:
    source = """
	Locked: {
		{Version: version.MustParse("1.35"), Default: false, PreRelease: featuregate.Alpha},
		// a comment
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta},
	},

	genericfeatures.Off: {
		{Version: version.MustParse("1.37"), Default: false, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.37"), Default: true, MinCompatibilityVersion: version.MustParse("1.37")},
	},
"""
    assert gate_defaults(source) == {"Locked": True, "Off": False}
