// The loader of the control plane's own pods, github.com/Azure/msi-dataplane, as a client of the tests.
//
//	msi-dataplane sign-in -ca <file> [-backstop <duration>] [-pause <duration>] <credential file>
//	msi-dataplane load
//
// sign-in loads a mounted credential once and signs in with it past every cache until its standard input is closed;
// load judges one document for each line of its standard input (base64). Both answer with one JSON object a line.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// What the control plane's clients ask for: ARM, and never a token out of the cache (a claims challenge is not answered from it).
var request = policy.TokenRequestOptions{
	Scopes: []string{cloud.AzurePublic.Services[cloud.ResourceManager].Audience + "/.default"},
	Claims: `{"access_token": {"nbf": {"essential": true}}}`,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("sign-in or load?")
	}
	switch arguments[0] {
	case "sign-in":
		return signIn(arguments[1:])
	case "load":
		return load(os.Stdin)
	default:
		return fmt.Errorf("%s: sign-in or load?", arguments[0])
	}
}

// clientOptions are those of the control plane's operators, but nothing is tried again: each answer counts.
func clientOptions(transport policy.Transporter) azcore.ClientOptions {
	return azcore.ClientOptions{
		Cloud:     cloud.AzurePublic,
		Retry:     policy.RetryOptions{MaxRetries: -1},
		Transport: transport,
	}
}

func answer(line any) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}
