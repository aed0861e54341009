package main

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// recorder remembers the last token request that went through it.
type recorder struct {
	next policy.Transporter
	url  *url.URL
	form url.Values
}

func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		if r.form, err = url.ParseQuery(string(body)); err != nil {
			return nil, err
		}
		r.url = request.URL
	}
	return r.next.Do(request)
}

// chain lists the thumbprints (SHA-1, upper-case hexadecimal) of the certificates that were sent, the signer's first.
func (r *recorder) chain() ([]string, error) {
	encoded, _, _ := strings.Cut(r.form.Get("client_assertion"), ".")
	header, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	var sent struct {
		Certificates [][]byte `json:"x5c"`
	}
	if err := json.Unmarshal(header, &sent); err != nil {
		return nil, fmt.Errorf("no client assertion was sent: %w", err)
	}
	thumbprints := []string{}
	for _, certificate := range sent.Certificates {
		thumbprints = append(thumbprints, fmt.Sprintf("%X", sha1.Sum(certificate)))
	}
	return thumbprints, nil
}
