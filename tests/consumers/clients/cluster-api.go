// The client of Cluster API's Azure provider, with the AzureClusterIdentity of a hosted cluster, as a program:
// `cluster-api <kubeconfig> <namespace> <identity> <resource group> <location> <subnet>`. `<verb> <machine>`, a line of
// standard input, is answered by a line: the error, quoted, or <nil>.
// Build it in a checkout of openshift/cluster-api-provider-azure.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	infrav1 "sigs.k8s.io/cluster-api-provider-azure/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-azure/azure"
	"sigs.k8s.io/cluster-api-provider-azure/azure/scope"
	"sigs.k8s.io/cluster-api-provider-azure/azure/services/networkinterfaces"
	"sigs.k8s.io/cluster-api-provider-azure/azure/services/resourceskus"
	"sigs.k8s.io/cluster-api-provider-azure/azure/services/virtualmachines"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	size    = "Standard_D4s_v3"
	timeout = time.Minute
)

var image = &infrav1.AzureMarketplaceImage{
	ImagePlan: infrav1.ImagePlan{Publisher: "azureopenshift", Offer: "aro4", SKU: "420-v2"}, Version: "latest",
}

func main() {
	ctx, subnet := context.Background(), must(arm.ParseResourceID(os.Args[6]))
	scheme := runtime.NewScheme()
	must(0, infrav1.AddToScheme(scheme))
	kubernetes := must(client.New(must(clientcmd.BuildConfigFromFlags("", os.Args[1])), client.Options{Scheme: scheme}))
	cluster := &infrav1.AzureCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: os.Args[2], Name: os.Args[3]},
		Spec: infrav1.AzureClusterSpec{AzureClusterClassSpec: infrav1.AzureClusterClassSpec{
			SubscriptionID: subnet.SubscriptionID, Location: os.Args[5],
			IdentityRef: &corev1.ObjectReference{Name: os.Args[3]},
		}},
	}
	signedIn := must(scope.NewClusterScope(ctx, scope.ClusterScopeParams{
		Client: kubernetes, Cluster: &clusterv1.Cluster{}, AzureCluster: cluster,
		CredentialCache: azure.NewCredentialCache(),
	}))
	interfaces, machines := must(networkinterfaces.NewClient(signedIn, timeout)), must(virtualmachines.NewClient(signedIn, timeout))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, name string
		must(fmt.Sscan(lines.Text(), &verb, &name))
		card := &networkinterfaces.NICSpec{
			Name: name + "-nic", ResourceGroup: os.Args[4], Location: os.Args[5], SubscriptionID: subnet.SubscriptionID,
			VNetResourceGroup: subnet.ResourceGroupName, VNetName: subnet.Parent.Name, SubnetName: subnet.Name,
		}
		machine := &virtualmachines.VMSpec{
			Name: name, ResourceGroup: os.Args[4], Location: os.Args[5], Size: size, BootstrapData: "aWduaXRpb24=",
			OSDisk: infrav1.OSDisk{OSType: "Linux"}, Image: &infrav1.Image{Marketplace: image},
			NICIDs: []string{azure.NetworkInterfaceID(subnet.SubscriptionID, os.Args[4], name+"-nic")},
		}
		calls := map[string]func() error{
			"read": func() (err error) {
				_, err = must(resourceskus.GetCache(signedIn, os.Args[5])).Get(ctx, size, resourceskus.VirtualMachines)
				return err
			},
			"make": func() error {
				sku, err := must(resourceskus.GetCache(signedIn, os.Args[5])).Get(ctx, size, resourceskus.VirtualMachines)
				if err != nil {
					return err
				}
				card.SKU, machine.SKU = &sku, sku
				_, _, err = interfaces.CreateOrUpdateAsync(ctx, card, "", must(card.Parameters(ctx, nil)))
				if err != nil {
					return err
				}
				_, _, err = machines.CreateOrUpdateAsync(ctx, machine, "", must(machine.Parameters(ctx, nil)))
				return err
			},
			"delete": func() error {
				if _, err := machines.DeleteAsync(ctx, machine, ""); err != nil {
					return err
				}
				_, err := interfaces.DeleteAsync(ctx, card, "")
				return err
			},
		}
		fmt.Printf("%q\n", fmt.Sprint(calls[verb]()))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
