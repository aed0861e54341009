// The cloud provider's client of OpenShift's cloud network config controller, as a program: `network <directory of its
// Secret>`. A line of standard input, `read`, `assign` or `release` with the id of a machine and an address, is answered
// by a line: the error, quoted, or <nil>.
// Build it in a checkout of openshift/cloud-network-config-controller.
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	"github.com/openshift/cloud-network-config-controller/pkg/cloudprovider"
	"github.com/openshift/library-go/pkg/operator/configobserver/featuregates"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func main() {
	client, err := cloudprovider.NewCloudProviderClient(
		cloudprovider.CloudProviderConfig{
			PlatformType: "Azure", AzureEnvironment: "AzurePublicCloud", CredentialDir: os.Args[1],
		},
		nil,
		featuregates.NewFeatureGate([]configv1.FeatureGateName{features.FeatureGateAzureWorkloadIdentity}, nil),
	)
	if err != nil {
		log.Fatal(err)
	}
	calls := map[string]func(net.IP, *corev1.Node) error{
		"read": func(_ net.IP, node *corev1.Node) error {
			_, err := client.GetNodeEgressIPConfiguration(node, sets.New[string]())
			return err
		},
		"assign": client.AssignPrivateIP, "release": client.ReleasePrivateIP,
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, machine, address string
		if _, err := fmt.Sscan(lines.Text(), &verb, &machine, &address); err != nil {
			log.Fatal(err)
		}
		node := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "azure://" + machine}}
		fmt.Printf("%q\n", fmt.Sprint(calls[verb](net.ParseIP(address), node)))
	}
}
