// go-azure-sdk makes, reads and deletes what Terraform's azurerm makes of a stack's kinds, with the library and the API
// versions of azurerm 5.2, and with a PKCS#12 file as azurerm signs in.
//
// Usage: go-azure-sdk <resource group> <managed cluster>. It reads ARM_*, and prints JSON. Nothing in it knows the local
// cloud.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/hashicorp/go-azure-helpers/resourcemanager/commonids"
	"github.com/hashicorp/go-azure-sdk/resource-manager/authorization/2022-04-01/roleassignments"
	"github.com/hashicorp/go-azure-sdk/resource-manager/authorization/2022-05-01-preview/roledefinitions"
	"github.com/hashicorp/go-azure-sdk/resource-manager/containerservice/2025-10-01/managedclusters"
	"github.com/hashicorp/go-azure-sdk/resource-manager/keyvault/2026-02-01/vaults"
	"github.com/hashicorp/go-azure-sdk/resource-manager/managedidentity/2024-11-30/federatedidentitycredentials"
	"github.com/hashicorp/go-azure-sdk/resource-manager/managedidentity/2024-11-30/identities"
	"github.com/hashicorp/go-azure-sdk/resource-manager/resources/2023-07-01/resourcegroups"
	"github.com/hashicorp/go-azure-sdk/resource-manager/storage/2025-08-01/storageaccounts"
	"github.com/hashicorp/go-azure-sdk/sdk/auth"
	"github.com/hashicorp/go-azure-sdk/sdk/environments"
)

const location, name = "eastus", "by-terraform"

type seen struct {
	Group     string `json:"group"`
	ClientID  string `json:"clientID"`
	Federated string `json:"federated"`
	Role      string `json:"role"`
	Vault     string `json:"vault"`
	Account   string `json:"account"`
	HasUser   bool   `json:"hasUser"`
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	found := look(ctx, os.Args[1], os.Args[2])
	must(0, json.NewEncoder(os.Stdout).Encode(found))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func look(ctx context.Context, group, cluster string) *seen {
	api, subscription := environments.AzurePublic().ResourceManager, os.Getenv("ARM_SUBSCRIPTION_ID")
	signedIn := must(auth.NewAuthorizerFromCredentials(ctx, auth.Credentials{
		Environment:           *environments.AzurePublic(),
		TenantID:              os.Getenv("ARM_TENANT_ID"),
		ClientID:              os.Getenv("ARM_CLIENT_ID"),
		ClientCertificatePath: os.Getenv("ARM_CLIENT_CERTIFICATE_PATH"),
		EnableAuthenticatingUsingClientCertificate: true,
	}, api))
	found := &seen{}

	groups := must(resourcegroups.NewResourceGroupsClientWithBaseURI(api))
	groups.Client.SetAuthorizer(signedIn)
	groupID := commonids.NewResourceGroupID(subscription, name)
	must(groups.CreateOrUpdate(ctx, groupID, resourcegroups.ResourceGroup{Location: location}))
	found.Group = *must(groups.Get(ctx, groupID)).Model.Name

	managed := must(identities.NewIdentitiesClientWithBaseURI(api))
	managed.Client.SetAuthorizer(signedIn)
	identityID := commonids.NewUserAssignedIdentityID(subscription, name, name)
	must(managed.UserAssignedIdentitiesCreateOrUpdate(ctx, identityID, identities.Identity{Location: location}))
	identity := must(managed.UserAssignedIdentitiesGet(ctx, identityID)).Model.Properties
	found.ClientID = *identity.ClientId

	federated := must(federatedidentitycredentials.NewFederatedIdentityCredentialsClientWithBaseURI(api))
	federated.Client.SetAuthorizer(signedIn)
	credentialID := federatedidentitycredentials.NewFederatedIdentityCredentialID(subscription, name, name, "one")
	must(federated.CreateOrUpdate(ctx, credentialID, federatedidentitycredentials.FederatedIdentityCredential{
		Properties: &federatedidentitycredentials.FederatedIdentityCredentialProperties{
			Audiences: []string{"openshift"},
			Issuer:    "https://issuer.example.com/",
			Subject:   "system:serviceaccount:one:two",
		},
	}))
	found.Federated = *must(federated.Get(ctx, credentialID)).Model.Name

	definitions := must(roledefinitions.NewRoleDefinitionsClientWithBaseURI(api))
	definitions.Client.SetAuthorizer(signedIn)
	filter := "roleName eq 'Key Vault Secrets User'"
	roles := must(definitions.List(ctx, commonids.NewScopeID(groupID.ID()), roledefinitions.ListOperationOptions{Filter: &filter}))
	role := (*roles.Model)[0]

	assignments := must(roleassignments.NewRoleAssignmentsClientWithBaseURI(api))
	assignments.Client.SetAuthorizer(signedIn)
	assignmentID := roleassignments.NewScopedRoleAssignmentID(groupID.ID(), "5b7e2c90-1f3d-4a68-9c0e-0c2d5e7f9a11")
	kind := roleassignments.PrincipalTypeServicePrincipal
	must(assignments.Create(ctx, assignmentID, roleassignments.RoleAssignmentCreateParameters{
		Properties: roleassignments.RoleAssignmentProperties{
			PrincipalId:      *identity.PrincipalId,
			PrincipalType:    &kind,
			RoleDefinitionId: *role.Id,
		},
	}))
	assigned := must(assignments.Get(ctx, assignmentID, roleassignments.DefaultGetOperationOptions()))
	found.Role = assigned.Model.Properties.RoleDefinitionId

	keyVaults := must(vaults.NewVaultsClientWithBaseURI(api))
	keyVaults.Client.SetAuthorizer(signedIn)
	vaultID, byRoles := commonids.NewKeyVaultID(subscription, name, "kv-by-terraform"), true
	properties := vaults.VaultProperties{
		EnableRbacAuthorization: &byRoles,
		Sku:                     vaults.Sku{Family: vaults.SkuFamilyA, Name: vaults.SkuNameStandard},
		TenantId:                os.Getenv("ARM_TENANT_ID"),
	}
	parameters := vaults.VaultCreateOrUpdateParameters{Location: location, Properties: properties}
	must(0, keyVaults.CreateOrUpdateThenPoll(ctx, vaultID, parameters))
	found.Vault = *must(keyVaults.Get(ctx, vaultID)).Model.Properties.VaultUri

	accounts := must(storageaccounts.NewStorageAccountsClientWithBaseURI(api))
	accounts.Client.SetAuthorizer(signedIn)
	accountID := commonids.NewStorageAccountID(subscription, name, "stbyterraform")
	must(0, accounts.CreateThenPoll(ctx, accountID, storageaccounts.StorageAccountCreateParameters{
		Kind:     storageaccounts.KindStorageVTwo,
		Location: location,
		Sku:      storageaccounts.Sku{Name: storageaccounts.SkuNameStandardLRS},
	}))
	account := must(accounts.GetProperties(ctx, accountID, storageaccounts.DefaultGetPropertiesOperationOptions()))
	found.Account = *account.Model.Properties.PrimaryEndpoints.Blob

	clusters := must(managedclusters.NewManagedClustersClientWithBaseURI(api))
	clusters.Client.SetAuthorizer(signedIn)
	clusterID := commonids.NewKubernetesClusterID(subscription, group, cluster)
	must(clusters.Get(ctx, clusterID))
	options := managedclusters.DefaultListClusterUserCredentialsOperationOptions()
	credentials := must(clusters.ListClusterUserCredentials(ctx, clusterID, options))
	found.HasUser = *(*credentials.Model.Kubeconfigs)[0].Value != ""

	must(accounts.Delete(ctx, accountID))
	must(keyVaults.Delete(ctx, vaultID))
	must(assignments.Delete(ctx, assignmentID, roleassignments.DefaultDeleteOperationOptions()))
	must(federated.Delete(ctx, credentialID))
	must(managed.UserAssignedIdentitiesDelete(ctx, identityID))
	must(0, groups.DeleteThenPoll(ctx, groupID, resourcegroups.DefaultDeleteOperationOptions()))
	return found
}
