// Command device-plugin registers cards with the kubelet that no hardware is behind: device-plugin nvidia.com/gpu 8
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const socketName = "placement-webhook-test.sock"

type plugin struct {
	v1beta1.UnimplementedDevicePluginServer
	devices []*v1beta1.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *v1beta1.Empty, stream v1beta1.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&v1beta1.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate puts the cards of a container into its environment, where a test can read them.
func (p *plugin) Allocate(_ context.Context, request *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	answer := &v1beta1.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		cards := map[string]string{"CARDS": strings.Join(container.DevicesIds, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, &v1beta1.ContainerAllocateResponse{Envs: cards})
	}
	return answer, nil
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the cards until the kubelet deletes the socket, which it does when it starts again: then it ends, and is
// started again.
func run(resource, number string) error {
	count, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	served := &plugin{}
	for card := range count {
		device := &v1beta1.Device{ID: fmt.Sprintf("card-%d", card), Health: v1beta1.Healthy}
		served.devices = append(served.devices, device)
	}
	socket := v1beta1.DevicePluginPath + socketName
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, served)
	go server.Serve(listener)
	kubelet, err := grpc.NewClient("unix://"+v1beta1.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	registration := &v1beta1.RegisterRequest{Version: v1beta1.Version, Endpoint: socketName, ResourceName: resource}
	if _, err = v1beta1.NewRegistrationClient(kubelet).Register(context.Background(), registration); err != nil {
		return err
	}
	fmt.Println("registered", resource, count)
	return untilRemoved(socket)
}

// untilRemoved returns when the file at `path` is removed.
func untilRemoved(path string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	for event := range watcher.Events {
		if event.Name == path && event.Has(fsnotify.Remove) {
			return nil
		}
	}
	return nil
}
