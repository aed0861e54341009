// The storage client of OpenShift's image registry operator, as a program: `image-registry <subscription> <resource
// group> <location>`. `<verb> <account>`, a line of standard input, is answered by a line: the error, quoted, or <nil>.
// Build it in a checkout of openshift/cluster-image-registry-operator.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/Azure/go-autorest/autorest/azure"
	"github.com/openshift/cluster-image-registry-operator/pkg/storage/azure/azureclient"
)

func main() {
	group, location := os.Args[2], os.Args[3]
	client, err := azureclient.New(&azureclient.Options{
		Environment: azure.PublicCloud, SubscriptionID: os.Args[1],
		// Of a self-managed cluster's Secret.
		TenantID: os.Getenv("AZURE_TENANT_ID"), ClientID: os.Getenv("AZURE_CLIENT_ID"),
		FederatedTokenFile: os.Getenv("AZURE_FEDERATED_TOKEN_FILE"),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, storage := context.Background(), azureclient.NewStorageAccountClient(client, "")
	container := func(account string) (*azureclient.BlobClient, error) {
		key, err := storage.GetPrimaryKey(ctx, group, account)
		if err != nil {
			return nil, err
		}
		return client.NewBlobClient(azure.PublicCloud, account, key, "https://"+account+".blob.core.windows.net/")
	}
	calls := map[string]func(account string) error{
		"check": func(account string) error {
			taken, err := storage.CheckNameAvailability(ctx, account)
			if taken {
				return fmt.Errorf("%s is taken", account)
			}
			return err
		},
		"create": func(account string) error {
			return storage.Create(ctx, &azureclient.StorageAccountCreateOptions{
				ResourceGroupName: group, AccountName: account, Location: location,
			})
		},
		"fill": func(account string) error {
			blobs, err := container(account)
			if err != nil {
				return err
			}
			return blobs.CreateStorageContainer(ctx, "registry")
		},
		"empty": func(account string) error {
			blobs, err := container(account)
			if err != nil {
				return err
			}
			return blobs.DeleteStorageContainer(ctx, "registry")
		},
		"delete": func(account string) error { return storage.Delete(ctx, group, account) },
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, account string
		if _, err := fmt.Sscan(lines.Text(), &verb, &account); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q\n", fmt.Sprint(calls[verb](account)))
	}
}
