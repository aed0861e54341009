package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/Azure/msi-dataplane/pkg/dataplane"
	"github.com/go-logr/logr"
)

// signedIn is one line of sign-in. Error is Entra's refusal, or why Entra was not reached.
type signedIn struct {
	Time       time.Time `json:"time"`
	Thumbprint string    `json:"thumbprint,omitempty"`
	Error      string    `json:"error,omitempty"`
}

func signIn(arguments []string) error {
	flags := flag.NewFlagSet("sign-in", flag.ContinueOnError)
	authorities := flags.String("ca", "", "PEM file of the certificate authorities to trust")
	// A swap of the CSI driver's link is no Write event of the watched file: the ticker alone sees it.
	backstop := flags.Duration("backstop", 6*time.Hour, "how often the file is read again (WithBackstopRefresh)")
	pause := flags.Duration("pause", 0, "between two sign-ins")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	trusted, err := trusting(*authorities)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	record := &recorder{next: trusted}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	credential, err := dataplane.NewUserAssignedIdentityCredential(ctx, flags.Arg(0),
		dataplane.WithBackstopRefresh(*backstop),
		dataplane.WithClientOpts(clientOptions(record)),
		dataplane.WithLogger(&log),
	)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		line := signedIn{}
		_, err := credential.GetToken(context.Background(), request)
		if err != nil {
			line.Error = err.Error()
		} else if chain, err := record.chain(); err != nil {
			return err
		} else {
			line.Thumbprint = chain[0]
		}
		line.Time = time.Now().UTC()
		if err := answer(line); err != nil {
			return err
		}
		time.Sleep(*pause)
	}
	return nil
}

func trusting(file string) (*http.Client, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: found no certificate", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport, Timeout: 15 * time.Second}, nil
}
