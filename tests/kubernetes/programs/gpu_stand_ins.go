package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// standIns is a device plug-in, like NVIDIA's, for GPUs that do not exist. A container that is given GPU 3
// finds the character device /dev/nvidia3 and the id "GPU-stand-in-3" in NVIDIA_VISIBLE_DEVICES.
type standIns struct {
	plugin.UnimplementedDevicePluginServer
	count   int
	devices string        // folder with the character devices nvidia0, nvidia1, ...
	toggle  chan struct{} // a message makes GPU 0 unhealthy, or healthy again
}

const gpuPrefix = "GPU-stand-in-"

func (s *standIns) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (s *standIns) ListAndWatch(_ *plugin.Empty, stream grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	health := plugin.Healthy
	for {
		list := &plugin.ListAndWatchResponse{}
		for number := range s.count {
			list.Devices = append(list.Devices, &plugin.Device{ID: fmt.Sprint(gpuPrefix, number), Health: plugin.Healthy})
		}
		if s.count > 0 {
			list.Devices[0].Health = health
		}
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-s.toggle:
			if health == plugin.Healthy {
				health = plugin.Unhealthy
			} else {
				health = plugin.Healthy
			}
		}
	}
}

func (s *standIns) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &plugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		}
		for _, id := range container.DevicesIds {
			name := "nvidia" + strings.TrimPrefix(id, gpuPrefix)
			given.Devices = append(given.Devices, &plugin.DeviceSpec{
				ContainerPath: "/dev/" + name, HostPath: filepath.Join(s.devices, name), Permissions: "rw"})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

// runStandIns offers `-count` GPUs to the kubelet whose folder of device plug-ins is given, until it is ended.
// SIGUSR1 makes GPU 0 unhealthy, and healthy again.
func runStandIns() error {
	flags := flag.NewFlagSet("gpu-stand-ins", flag.ExitOnError)
	count := flags.Int("count", 1, "number of GPUs")
	devices := flags.String("devices", "/dev", "folder with the character devices nvidia0, nvidia1, ...")
	folder := flags.String("plugins", plugin.DevicePluginPath, "the kubelet's folder of device plug-ins")
	resource := flags.String("resource", "nvidia.com/gpu", "name of the resource")
	flags.Parse(os.Args[1:])

	const name = "gpu-stand-ins.sock"
	socket := filepath.Join(*folder, name)
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	gpus := &standIns{count: *count, devices: *devices, toggle: make(chan struct{})}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			gpus.toggle <- struct{}{}
		}
	}()
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, gpus)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	kubelet, err := grpc.NewClient("unix://"+filepath.Join(*folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = plugin.NewRegistrationClient(kubelet).Register(context.Background(), &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: name, ResourceName: *resource}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	fmt.Println("registered")
	return <-ended
}
