package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Azure/msi-dataplane/pkg/dataplane"
	"github.com/go-logr/logr"
)

// loaded is one line of load: with whom and with what the loaded credential signs in, or why it was not loaded.
type loaded struct {
	Authority string   `json:"authority,omitempty"`
	Tenant    string   `json:"tenant,omitempty"`
	ClientID  string   `json:"client_id,omitempty"`
	Chain     []string `json:"chain,omitempty"`
	Error     string   `json:"error,omitempty"`
	Panic     bool     `json:"panic,omitempty"`
}

func load(documents io.Reader) error {
	directory, err := os.MkdirTemp("", "msi-dataplane-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	lines := bufio.NewReader(documents)
	for number := 0; ; number++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		document, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		// Each in a directory of its own: the watch of the document before may not have ended yet, and a goroutine that
		// panics on this one would take the process with it.
		file := filepath.Join(directory, strconv.Itoa(number), "credential")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, document, 0o600); err != nil {
			return err
		}
		if err := answer(judge(file)); err != nil {
			return err
		}
	}
}

// judge loads the file and signs in with it at an Entra ID that grants everything.
func judge(file string) (verdict loaded) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	defer func() {
		if reason := recover(); reason != nil {
			verdict = loaded{Error: fmt.Sprint(reason), Panic: true}
		}
	}()
	record := &recorder{next: granting{}}
	silent := logr.Discard()
	credential, err := dataplane.NewUserAssignedIdentityCredential(ctx, file,
		dataplane.WithClientOpts(clientOptions(record)),
		dataplane.WithLogger(&silent),
	)
	if err != nil {
		return loaded{Error: err.Error()}
	}
	if _, err := credential.GetToken(ctx, request); err != nil {
		return loaded{Error: "loaded, but no sign-in: " + err.Error()}
	}
	chain, err := record.chain()
	if err != nil {
		return loaded{Error: err.Error()}
	}
	return loaded{
		Authority: record.url.Scheme + "://" + record.url.Host,
		Tenant:    strings.Split(record.url.Path, "/")[1],
		ClientID:  record.form.Get("client_id"),
		Chain:     chain,
	}
}

// granting is an Entra ID that knows every tenant, client and certificate.
type granting struct{}

func (granting) Do(request *http.Request) (*http.Response, error) {
	root := "https://" + request.URL.Host + "/" + strings.Split(request.URL.Path, "/")[1]
	body := `{"token_type": "Bearer", "expires_in": 3600, "access_token": "granted"}`
	if request.Method == http.MethodGet {
		body = fmt.Sprintf(
			`{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q}`,
			root+"/v2.0", root+"/oauth2/v2.0/authorize", root+"/oauth2/v2.0/token",
		)
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    request,
	}, nil
}
