"""Make a copy of Kubernetes whose scheduler plugins record their calls and results."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLUGINS = Path("pkg/scheduler/framework/plugins")
_OWN = Path(__file__).parent / "golang"
_IMPORT = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/traced"


class Traced(NamedTuple):
    """A plugin: its package, its Go type, its name, its extension points and, if it takes args, its constructor."""

    package: str
    receiver: str
    name: str
    extension_points: tuple[str, ...]
    constructor: str = ""


_BOTH = ("PreFilter", "Filter")
_SCORES = ("Score", "NormalizeScore")
TRACED = (
    Traced("schedulinggates", "SchedulingGates", "SchedulingGates", ("PreEnqueue",)),
    Traced("nodename", "NodeName", "NodeName", ("Filter",)),
    Traced("nodeunschedulable", "NodeUnschedulable", "NodeUnschedulable", ("Filter",)),
    Traced("nodeports", "NodePorts", "NodePorts", _BOTH),
    Traced("nodeaffinity", "NodeAffinity", "NodeAffinity", (*_BOTH, *_SCORES), "New"),
    Traced("tainttoleration", "TaintToleration", "TaintToleration", ("Filter", *_SCORES)),
    Traced("noderesources", "Fit", "NodeResourcesFit", (*_BOTH, "Score"), "NewFit"),
    Traced(
        "noderesources",
        "BalancedAllocation",
        "NodeResourcesBalancedAllocation",
        ("Score",),
        "NewBalancedAllocation",
    ),
    Traced("imagelocality", "ImageLocality", "ImageLocality", ("Score",)),
    Traced("interpodaffinity", "InterPodAffinity", "InterPodAffinity", (*_BOTH, *_SCORES), "New"),
    Traced("podtopologyspread", "PodTopologySpread", "PodTopologySpread", (*_BOTH, *_SCORES), "New"),
    Traced("volumebinding", "VolumeBinding", "VolumeBinding", _BOTH),
    Traced("volumezone", "VolumeZone", "VolumeZone", _BOTH),
    Traced("volumerestrictions", "VolumeRestrictions", "VolumeRestrictions", _BOTH),
    Traced("nodevolumelimits", "CSILimits", "NodeVolumeLimits", _BOTH),
    Traced("nodedeclaredfeatures", "NodeDeclaredFeatures", "NodeDeclaredFeatures", _BOTH),
    Traced("dynamicresources", "DynamicResources", "DynamicResources", ("PreEnqueue", *_BOTH, *_SCORES)),
)

_SIGNATURES = {
    "PreEnqueue": ("ctx context.Context, pod *v1.Pod", "ctx, pod", "*fwk.Status"),
    "PreFilter": (
        "ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo",
        "ctx, state, pod, nodes",
        "(*fwk.PreFilterResult, *fwk.Status)",
    ),
    "Filter": (
        "ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo",
        "ctx, state, pod, nodeInfo",
        "*fwk.Status",
    ),
    "Score": (
        "ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo",
        "ctx, state, pod, nodeInfo",
        "(int64, *fwk.Status)",
    ),
    "NormalizeScore": (
        "ctx context.Context, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList",
        "ctx, state, pod, scores",
        "*fwk.Status",
    ),
}
_BODIES = {
    "PreEnqueue": """	status := pl.untracedPreEnqueue({given})
	traced.PreEnqueue("{name}", pl, pod, status)
	return status""",
    "PreFilter": """	result, status := pl.untracedPreFilter({given})
	traced.PreFilter("{name}", pl, state, pod, nodes, result, status)
	return result, status""",
    "Filter": """	status := pl.untracedFilter({given})
	traced.Filter("{name}", pl, state, pod, nodeInfo, status)
	return status""",
    "Score": """	score, status := pl.untracedScore({given})
	traced.Score("{name}", pl, state, pod, nodeInfo, score, status)
	return score, status""",
    "NormalizeScore": """	status := pl.untracedNormalizeScore({given})
	traced.NormalizeScore("{name}", pl, state, pod, scores, status)
	return status""",
}
_CONSTRUCTOR = """
func {constructor}(
	ctx context.Context, given runtime.Object, handle fwk.Handle, features feature.Features,
) (fwk.Plugin, error) {{
	plugin, err := untraced{constructor}(ctx, given, handle, features)
	traced.Args(plugin, given)
	return plugin, err
}}
"""
# The binder has tests of its own, which cover most of VolumeBinding.
_BINDER = """
func (b *volumeBinder) FindPodVolumes(
	logger klog.Logger, pod *v1.Pod, claims *PodVolumeClaims, node *v1.Node,
) (*PodVolumes, ConflictReasons, error) {
	volumes, reasons, err := b.untracedFindPodVolumes(logger, pod, claims, node)
	traced.Node("VolumeBinding", b, pod, node, reasons, err)
	return volumes, reasons, err
}

func (b *volumeBinder) GetPodVolumeClaims(logger klog.Logger, pod *v1.Pod) (*PodVolumeClaims, error) {
	claims, err := b.untracedGetPodVolumeClaims(logger, pod)
	if err != nil || len(claims.unboundClaimsImmediate) > 0 {
		traced.Pod("VolumeBinding", b, pod, ConflictReasons{"unbound"}, err)
	}
	return claims, err
}
"""


def traced_copy(kubernetes: Path, target: Path) -> None:
    """Copy the module's folder `kubernetes` to `target`, and trace the plugins of TRACED there."""
    shutil.copytree(kubernetes, target, copy_function=_copy_writable)
    for folder in (target, *(each for each in target.rglob("*") if each.is_dir())):
        folder.chmod(0o755)
    own = target / PLUGINS / "traced"
    own.mkdir()
    shutil.copy(_OWN / "traced.go", own)
    for each in TRACED:
        _trace(target / PLUGINS / each.package, each)


def _copy_writable(source: str, target: str) -> None:
    shutil.copyfile(source, target)


def _trace(folder: Path, plugin: Traced) -> None:
    renamed = [(rf"\({{0}} \*{plugin.receiver}\) ", point) for point in plugin.extension_points]
    written = [*(_wrapper(plugin, point) for point in plugin.extension_points)]
    imports = {'"context"', 'v1 "k8s.io/api/core/v1"', 'fwk "k8s.io/kube-scheduler/framework"', f'"{_IMPORT}"'}
    if plugin.constructor:
        renamed.append(("", plugin.constructor))
        written.append(_CONSTRUCTOR.format(constructor=plugin.constructor))
        imports |= {'"k8s.io/apimachinery/pkg/runtime"', '"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"'}
    if plugin.package == "volumebinding":
        renamed += [(r"\({0} \*volumeBinder\) ", name) for name in ("FindPodVolumes", "GetPodVolumeClaims")]
        written.append(_BINDER)
        imports.add('"k8s.io/klog/v2"')
    for receiver, name in renamed:
        _rename(folder, receiver.format(r"\w+"), name)
    lines = "\n".join(f"\t{each}" for each in sorted(imports))
    text = f"package {plugin.package}\n\nimport (\n{lines}\n)\n" + "\n".join(written)
    (folder / f"traced_{plugin.receiver.lower()}.go").write_text(text)


def _wrapper(plugin: Traced, point: str) -> str:
    parameters, given, results = _SIGNATURES[point]
    body = _BODIES[point].format(given=given, name=plugin.name)
    return f"\nfunc (pl *{plugin.receiver}) {point}({parameters}) {results} {{\n{body}\n}}\n"


def _rename(folder: Path, receiver: str, name: str) -> None:
    """Call the one function of that receiver and name `untraced…`."""
    defined = re.compile(rf"^(func {receiver}){name}\(", re.MULTILINE)
    found = [source for source in _sources(folder) if defined.search(source.read_text())]
    if len(found) != 1:
        raise ValueError(f"{folder}: {len(found)} files define {name}; look whether its signature changed")
    found[0].write_text(defined.sub(rf"\1untraced{name}(", found[0].read_text()))


def _sources(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.glob("*.go")) if not each.name.endswith("_test.go"))
