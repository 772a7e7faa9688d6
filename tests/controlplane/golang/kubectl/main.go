// Command kubectl is upstream's own.
//
// It is a binary of its own because the tests run it often: within the one of the control plane, its start would take
// twice the processor time.
package main

import (
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlerrors.CheckErr(err)
	}
}
