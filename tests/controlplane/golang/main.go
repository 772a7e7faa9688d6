// Command controlplane is etcd, kube-apiserver, kube-scheduler and kube-controller-manager in one binary.
//
// It runs the program whose name it is called by, as busybox does: the tests link it under the four
// names. One binary shares the packages the four have in common, so it is built once and is a
// third of the size of four. The commands are upstream's own, unchanged.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	name := filepath.Base(os.Args[0])
	switch component, known := components[name]; {
	case known:
		os.Exit(cli.Run(component()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintf(os.Stderr, "%s: called by an unknown name; link it as etcd, kube-apiserver, kube-controller-manager or kube-scheduler\n", name)
		os.Exit(2)
	}
}
