// azidentity makes one request with the credential of its environment and prints the status of the answer.
//
// Usage: azidentity <scope> <method> <url> [<body>]. Nothing in it knows the local cloud: proxy, certificate authority
// and credential come from the environment, as for any program of Azure's SDK for Go.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

func main() {
	status, err := request(os.Args[1], os.Args[2], os.Args[3], strings.Join(os.Args[4:], ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(status)
}

func request(scope, method, url, body string) (int, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return 0, err
	}
	token, err := credential.GetToken(context.Background(), policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return 0, err
	}
	sent, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	sent.Header.Set("Authorization", "Bearer "+token.Token)
	sent.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(sent)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
