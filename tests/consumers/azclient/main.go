// The library with which the cloud controller manager, the disk and the file driver read their cloud config, sign in and
// call ARM, as a program. `<verb> <name>`, a line of standard input, is answered by a line: the error, quoted, or <nil>.
//
//	azclient <cloud config> <kind of resource>
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient"
)

// config is what azclient itself reads of a cloud config, and where its programs put what they make.
type config struct {
	azclient.ARMClientConfig
	azclient.AzureAuthConfig
	azclient.ClientFactoryConfig
	ResourceGroup, Location string
}

func main() {
	var of config
	must(0, json.Unmarshal(must(os.ReadFile(os.Args[1])), &of))
	signedIn := must(azclient.NewAuthProvider(&of.ARMClientConfig, &of.AzureAuthConfig))
	clients := must(azclient.NewClientFactory(
		&of.ClientFactoryConfig, &of.ARMClientConfig, signedIn.CloudConfig, signedIn.GetAzIdentity(),
	))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, name string
		must(fmt.Sscan(lines.Text(), &verb, &name))
		fmt.Printf("%q\n", fmt.Sprint(of.call(clients, os.Args[2]+" "+verb, name)))
	}
}

func (of *config) call(clients azclient.ClientFactory, what, name string) (err error) {
	ctx := context.Background()
	switch what {
	case "loadBalancers list":
		_, err = clients.GetLoadBalancerClient().List(ctx, of.ResourceGroup)
	case "loadBalancers create":
		_, err = clients.GetLoadBalancerClient().CreateOrUpdate(ctx, of.ResourceGroup, name, armnetwork.LoadBalancer{
			Location: &of.Location, SKU: &armnetwork.LoadBalancerSKU{Name: to.Ptr(armnetwork.LoadBalancerSKUNameStandard)},
		})
	case "loadBalancers delete":
		err = clients.GetLoadBalancerClient().Delete(ctx, of.ResourceGroup, name)
	case "disks list":
		_, err = clients.GetDiskClient().List(ctx, of.ResourceGroup)
	case "disks create":
		_, err = clients.GetDiskClient().CreateOrUpdate(ctx, of.ResourceGroup, name, armcompute.Disk{
			Location: &of.Location,
			Properties: &armcompute.DiskProperties{
				CreationData: &armcompute.CreationData{CreateOption: to.Ptr(armcompute.DiskCreateOptionEmpty)},
				DiskSizeGB:   to.Ptr[int32](1),
			},
		})
	case "disks delete":
		err = clients.GetDiskClient().Delete(ctx, of.ResourceGroup, name)
	case "storageAccounts list":
		_, err = clients.GetAccountClient().List(ctx, of.ResourceGroup)
	case "storageAccounts create":
		_, err = clients.GetAccountClient().Create(ctx, of.ResourceGroup, name, &armstorage.AccountCreateParameters{
			Location: &of.Location, Kind: to.Ptr(armstorage.KindStorageV2),
			SKU: &armstorage.SKU{Name: to.Ptr(armstorage.SKUNameStandardLRS)},
		})
	case "storageAccounts delete":
		err = clients.GetAccountClient().Delete(ctx, of.ResourceGroup, name)
	default:
		log.Fatal(what)
	}
	return err
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
