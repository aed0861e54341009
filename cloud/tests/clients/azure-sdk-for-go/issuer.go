package main

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
)

const (
	account  = "bygooidc"
	document = ".well-known/openid-configuration"
	content  = `{"issuer": "https://bygooidc.blob.core.windows.net/bygooidc"}`
)

// publish makes an account with a public container, as ccoctl does, writes a document into it with the account's key,
// and returns what anybody reads there.
func publish(ctx context.Context, credential azcore.TokenCredential, subscription, group string) (string, error) {
	factory, err := armstorage.NewClientFactory(subscription, credential, nil)
	if err != nil {
		return "", err
	}
	key, err := makeAccount(ctx, factory, group)
	if err != nil {
		return "", err
	}
	address := "https://" + account + ".blob.core.windows.net/" + account
	signer, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return "", err
	}
	writer, err := azblob.NewClientWithSharedKeyCredential(address, signer, nil)
	if err != nil {
		return "", err
	}
	tags := map[string]string{"openshift.io_cloud-credential-operator_" + account: "owned"}
	// The address has the container already.
	_, err = writer.UploadBuffer(ctx, "", document, []byte(content), &azblob.UploadBufferOptions{Tags: tags})
	if err != nil {
		return "", err
	}
	reader, err := azblob.NewClientWithNoCredential(address, nil)
	if err != nil {
		return "", err
	}
	read := make([]byte, len(content))
	if _, err = reader.DownloadBuffer(ctx, "", document, read, nil); err != nil {
		return "", err
	}
	_, err = factory.NewAccountsClient().Delete(ctx, group, account, nil)
	return string(read), err
}

// makeAccount returns the first key of a new account.
func makeAccount(ctx context.Context, factory *armstorage.ClientFactory, group string) (string, error) {
	accounts := factory.NewAccountsClient()
	made, err := accounts.BeginCreate(ctx, group, account, armstorage.AccountCreateParameters{
		Kind:       to.Ptr(armstorage.KindStorageV2),
		SKU:        &armstorage.SKU{Name: to.Ptr(armstorage.SKUNameStandardLRS)},
		Location:   to.Ptr("eastus"),
		Properties: &armstorage.AccountPropertiesCreateParameters{AllowBlobPublicAccess: to.Ptr(true)},
	}, nil)
	if err != nil {
		return "", err
	}
	if _, err = made.PollUntilDone(ctx, nil); err != nil {
		return "", err
	}
	tags := map[string]*string{"by": to.Ptr("go")}
	if _, err = accounts.Update(ctx, group, account, armstorage.AccountUpdateParameters{Tags: tags}, nil); err != nil {
		return "", err
	}
	public := armstorage.BlobContainer{
		ContainerProperties: &armstorage.ContainerProperties{PublicAccess: to.Ptr(armstorage.PublicAccessContainer)},
	}
	if _, err = factory.NewBlobContainersClient().Create(ctx, group, account, account, public, nil); err != nil {
		return "", err
	}
	listed, err := accounts.ListKeys(ctx, group, account, nil)
	if err != nil {
		return "", err
	}
	return *listed.Keys[0].Value, nil
}
