// azure-sdk-for-go makes, lists and deletes a managed identity with a federated credential, lists a vault's secrets, and
// publishes a document with the key of a storage account.
//
// Usage: azure-sdk-for-go <subscription> <resource group> <vault>. It prints JSON. Nothing in it knows the local cloud.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
)

const identity = "by-go"

type seen struct {
	ClientID   string   `json:"clientID"`
	Identities []string `json:"identities"`
	Federated  string   `json:"federated"`
	Secrets    []string `json:"secrets"`
	Published  string   `json:"published"`
}

func main() {
	log.SetFlags(0)
	credential, err := azidentity.NewEnvironmentCredential(nil)
	if err != nil {
		log.Fatal(err)
	}
	found, err := look(context.Background(), credential, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func look(ctx context.Context, credential azcore.TokenCredential, subscription, group, vault string) (*seen, error) {
	factory, err := armmsi.NewClientFactory(subscription, credential, nil)
	if err != nil {
		return nil, err
	}
	identities := factory.NewUserAssignedIdentitiesClient()
	made, err := identities.CreateOrUpdate(ctx, group, identity, armmsi.Identity{Location: to.Ptr("eastus")}, nil)
	if err != nil {
		return nil, err
	}
	federated, err := factory.NewFederatedIdentityCredentialsClient().CreateOrUpdate(
		ctx, group, identity, "one", armmsi.FederatedIdentityCredential{
			Properties: &armmsi.FederatedIdentityCredentialProperties{
				Issuer:    to.Ptr("https://issuer.example.com/"),
				Subject:   to.Ptr("system:serviceaccount:one:two"),
				Audiences: []*string{to.Ptr("openshift")},
			},
		}, nil)
	if err != nil {
		return nil, err
	}
	found := &seen{ClientID: *made.Properties.ClientID, Federated: *federated.Name}
	for pages := identities.NewListByResourceGroupPager(group, nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, each := range page.Value {
			found.Identities = append(found.Identities, *each.Name)
		}
	}
	secrets, err := azsecrets.NewClient("https://"+vault+".vault.azure.net", credential, nil)
	if err != nil {
		return nil, err
	}
	for pages := secrets.NewListSecretPropertiesPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, each := range page.Value {
			found.Secrets = append(found.Secrets, each.ID.Name())
		}
	}
	if found.Published, err = publish(ctx, credential, subscription, group); err != nil {
		return nil, err
	}
	_, err = identities.Delete(ctx, group, identity, nil)
	return found, err
}
