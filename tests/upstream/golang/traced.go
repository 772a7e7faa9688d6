// Package traced writes what plugins of kube-scheduler were asked, and what they answered, one JSON object a line.
//
// Plugins keep what they read in fields, each in its own way. A walk over the fields finds it: feature gates, listers,
// stores and the snapshot.
package traced

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	fwk "k8s.io/kube-scheduler/framework"
)

// Folder is the environment variable that names the folder of the records.
const Folder = "TRACED_FOLDER"

const (
	ownPackages = "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	deepest     = 4
)

var (
	lock    sync.Mutex
	numbers int
	args    = map[any]runtime.Object{}
)

type node struct {
	Node *v1.Node  `json:"node"`
	Pods []*v1.Pod `json:"pods"`
}

type record struct {
	Number    int              `json:"number"`
	Plugin    string           `json:"plugin"`
	Point     string           `json:"point"`
	State     string           `json:"state"`
	Pod       *v1.Pod          `json:"pod"`
	Asked     *node            `json:"asked,omitempty"`
	Code      string           `json:"code"`
	Reasons   []string         `json:"reasons"`
	NodeNames []string         `json:"nodeNames"`
	Scores    map[string]int64 `json:"scores,omitempty"`
	Args      runtime.Object   `json:"args,omitempty"`
	Features  map[string]bool  `json:"features"`
	Nodes     []node           `json:"nodes"`
	Objects   []any            `json:"objects"`
}

// Args keeps the args that a plugin was made with.
func Args(plugin any, given runtime.Object) {
	lock.Lock()
	defer lock.Unlock()
	if plugin != nil && given != nil && !reflect.ValueOf(given).IsNil() {
		args[plugin] = given
	}
}

// PreEnqueue writes what a plugin says of a pod before it enters the queue.
func PreEnqueue(name string, plugin any, pod *v1.Pod, status *fwk.Status) {
	write(name, plugin, record{Point: "PreEnqueue", Pod: pod}, nil, status)
}

// PreFilter writes what a plugin says of a pod before it has seen a node.
func PreFilter(
	name string, plugin any, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, result *fwk.PreFilterResult, status *fwk.Status,
) {
	made := record{Point: "PreFilter", State: identity(state), Pod: pod}
	if result != nil && result.NodeNames != nil {
		made.NodeNames = append([]string{}, result.NodeNames.UnsortedList()...)
	}
	write(name, plugin, made, nodes, status)
}

// Filter writes what a plugin says of a pod and a node.
func Filter(name string, plugin any, state fwk.CycleState, pod *v1.Pod, asked fwk.NodeInfo, status *fwk.Status) {
	made := record{Point: "Filter", State: identity(state), Pod: pod}
	if asked != nil {
		found := nodeOf(asked)
		made.Asked = &found
	}
	write(name, plugin, made, nil, status)
}

// Score writes the score that a plugin gives a node, not yet normalized.
func Score(name string, plugin any, state fwk.CycleState, pod *v1.Pod, asked fwk.NodeInfo, score int64, status *fwk.Status) {
	made := record{Point: "Score", State: identity(state), Pod: pod}
	if asked != nil && asked.Node() != nil {
		found := nodeOf(asked)
		made.Asked = &found
		made.Scores = map[string]int64{asked.Node().Name: score}
	}
	write(name, plugin, made, nil, status)
}

// NormalizeScore writes the scores that a plugin makes of those of all nodes.
func NormalizeScore(
	name string, plugin any, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList, status *fwk.Status,
) {
	made := record{Point: "NormalizeScore", State: identity(state), Pod: pod, Scores: map[string]int64{}}
	for _, each := range scores {
		made.Scores[each.Name] = each.Score
	}
	write(name, plugin, made, nil, status)
}

// Node writes an answer about a pod and a node that comes as reasons and an error instead of a status.
func Node[R ~string](name string, plugin any, pod *v1.Pod, asked *v1.Node, reasons []R, failure error) {
	made := record{Point: "Filter", Pod: pod}
	if asked != nil {
		made.Asked = &node{Node: asked}
	}
	write(name, plugin, made, nil, statusOf(reasons, failure))
}

// Pod writes an answer about a pod alone that comes as reasons and an error instead of a status.
func Pod[R ~string](name string, plugin any, pod *v1.Pod, reasons []R, failure error) {
	write(name, plugin, record{Point: "PreFilter", Pod: pod}, nil, statusOf(reasons, failure))
}

func statusOf[R ~string](reasons []R, failure error) *fwk.Status {
	if failure != nil {
		return fwk.AsStatus(failure)
	}
	if len(reasons) == 0 {
		return nil
	}
	status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	for _, reason := range reasons {
		status.AppendReason(string(reason))
	}
	return status
}

// The tests' output says to which test a number belongs: they are told apart there.
func write(name string, plugin any, made record, nodes []fwk.NodeInfo, status *fwk.Status) {
	folder := os.Getenv(Folder)
	if folder == "" {
		return
	}
	found := &walk{features: map[string]bool{}, nodes: map[string]node{}}
	found.value(reflect.ValueOf(plugin), "", 0)
	found.infos(nodes)
	lock.Lock()
	defer lock.Unlock()
	numbers++
	made.Number = numbers
	made.Plugin = name
	made.Code = status.Code().String()
	if status != nil {
		made.Reasons = status.Reasons()
	}
	made.Args = args[plugin]
	made.Features = found.features
	for _, each := range found.nodes {
		made.Nodes = append(made.Nodes, each)
	}
	made.Objects = found.objects
	line, err := json.Marshal(made)
	if err != nil {
		line = []byte(fmt.Sprintf(`{"number": %d, "error": %q}`, numbers, err.Error()))
	}
	file, err := os.OpenFile(filepath.Join(folder, "records"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	fmt.Printf("\nTRACED %d\n", numbers)
}

func identity(state fwk.CycleState) string {
	if state == nil || reflect.ValueOf(state).IsNil() {
		return ""
	}
	return fmt.Sprintf("%p", state)
}

// nodeOf says what stands on a node; tests may leave the node itself out where a plugin reads the pods alone.
func nodeOf(info fwk.NodeInfo) node {
	made := node{Node: info.Node(), Pods: []*v1.Pod{}}
	if made.Node == nil {
		made.Node = &v1.Node{}
	}
	for _, pod := range info.GetPods() {
		made.Pods = append(made.Pods, pod.GetPod())
	}
	return made
}

type walk struct {
	features map[string]bool
	nodes    map[string]node
	objects  []any
}

func (w *walk) infos(infos []fwk.NodeInfo) {
	for _, info := range infos {
		if info != nil && info.Node() != nil {
			w.nodes[info.Node().Name] = nodeOf(info)
		}
	}
}

// value takes in what a field holds; one that cannot be asked, as a fake may panic, holds nothing.
func (w *walk) value(value reflect.Value, name string, depth int) {
	defer func() { _ = recover() }()
	for value.IsValid() && value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if !value.IsValid() || depth > deepest {
		return
	}
	if value.Kind() == reflect.Bool {
		w.features[strings.ToLower(name)] = value.Bool()
		return
	}
	if (value.Kind() == reflect.Pointer || value.Kind() == reflect.Map) && value.IsNil() {
		return
	}
	if value.CanInterface() && w.known(value) {
		return
	}
	w.fields(value, depth)
}

func (w *walk) fields(value reflect.Value, depth int) {
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct || !strings.HasPrefix(value.Type().PkgPath(), ownPackages) || !value.CanAddr() {
		return
	}
	for index := range value.NumField() {
		field := value.Field(index)
		reachable := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		w.value(reachable, value.Type().Field(index).Name, depth+1)
	}
}

// known says whether it is one of the interfaces that plugins read the cluster by, and takes in what there is.
func (w *walk) known(value reflect.Value) bool {
	switch holder := value.Interface().(type) {
	case fwk.Handle:
		w.attempt(func() { w.value(reflect.ValueOf(holder.SnapshotSharedLister()), "", deepest) })
		w.attempt(func() { w.value(reflect.ValueOf(holder.SharedDRAManager()), "", deepest) })
	case fwk.SharedLister:
		infos, _ := holder.NodeInfos().List()
		w.infos(infos)
	case fwk.SharedDRAManager:
		w.attempt(func() { w.list(reflect.ValueOf(holder.ResourceClaims())) })
		w.attempt(func() { w.list(reflect.ValueOf(holder.DeviceClasses())) })
		slices, _ := holder.ResourceSlices().ListWithDeviceTaintRules()
		w.each(reflect.ValueOf(slices))
	default:
		return w.list(value)
	}
	return true
}

func (w *walk) attempt(ask func()) {
	defer func() { _ = recover() }()
	ask()
}

// list takes in the objects of a lister or a store, and says whether there were any. Fakes are slices, and those that
// cannot list themselves may hold one.
func (w *walk) list(value reflect.Value) bool {
	before := len(w.objects)
	if value.Kind() == reflect.Slice {
		w.each(value)
		return len(w.objects) > before
	}
	list := value.MethodByName("List")
	if !list.IsValid() || list.Type().NumOut() == 0 || list.Type().Out(0).Kind() != reflect.Slice {
		return false
	}
	given := []reflect.Value{}
	if list.Type().NumIn() == 1 {
		given = append(given, reflect.ValueOf(labels.Everything()))
	}
	w.each(list.Call(given)[0])
	return len(w.objects) > before
}

func (w *walk) each(values reflect.Value) {
	for index := range values.Len() {
		value := values.Index(index)
		for value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		if value.Kind() == reflect.Struct {
			copied := reflect.New(value.Type())
			copied.Elem().Set(value)
			value = copied
		}
		object, isObject := value.Interface().(runtime.Object)
		if !isObject {
			continue
		}
		if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
			group, kind := kinds[0].ToAPIVersionAndKind()
			w.objects = append(w.objects, map[string]any{"apiVersion": group, "kind": kind, "object": object})
		}
	}
}
