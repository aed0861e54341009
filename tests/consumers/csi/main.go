// What the sidecars of a CSI driver's controller ask of it, as a program: `csi <socket>`. `<verb> <volume>`, a line of
// standard input, with a node to publish it at, is answered by a line: the error, quoted, or <nil>.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	connection, err := grpc.NewClient(
		"unix:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()),
		// The driver may not have begun to listen.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
	)
	if err != nil {
		log.Fatal(err)
	}
	controller, volumes := csi.NewControllerClient(connection), map[string]*csi.Volume{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, volume, node string
		if read, err := fmt.Sscan(lines.Text(), &verb, &volume, &node); read < 2 {
			log.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		fmt.Printf("%q\n", fmt.Sprint(call(ctx, controller, volumes, verb, volume, node)))
		cancel()
	}
}

var capability = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func call(
	ctx context.Context, controller csi.ControllerClient, volumes map[string]*csi.Volume, verb, name, node string,
) (err error) {
	volume := volumes[name]
	switch verb {
	case "create":
		var made *csi.CreateVolumeResponse
		made, err = controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability},
			CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
			// As external-provisioner with --extra-create-metadata.
			Parameters: map[string]string{
				"csi.storage.k8s.io/pv/name": name, "csi.storage.k8s.io/pvc/name": "claim",
				"csi.storage.k8s.io/pvc/namespace": "default",
			},
		})
		volumes[name] = made.GetVolume()
	case "publish":
		_, err = controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId: volume.GetVolumeId(), NodeId: node,
			VolumeCapability: capability, VolumeContext: volume.GetVolumeContext(),
		})
	case "unpublish":
		_, err = controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{
			VolumeId: volume.GetVolumeId(), NodeId: node,
		})
	case "delete":
		_, err = controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.GetVolumeId()})
	default:
		log.Fatal(verb)
	}
	return err
}
