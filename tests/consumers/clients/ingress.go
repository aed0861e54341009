// The DNS client of OpenShift's ingress operator, as a program: `ingress <subscription> <infra id>`. A line of standard
// input, `ensure` or `delete` with name and zone of a record, is answered by a line: the error, quoted, or <nil>.
// Build it in a checkout of openshift/cluster-ingress-operator.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"

	configv1 "github.com/openshift/api/config/v1"
	iov1 "github.com/openshift/api/operatoringress/v1"
	"github.com/openshift/cluster-ingress-operator/pkg/dns/azure"
)

func main() {
	// Client, tenant and file come from the environment, as in the operator's pod (pkg/dns/azure/client/auth.go).
	provider, err := azure.NewProvider(azure.Config{
		Environment: "AzurePublicCloud", SubscriptionID: os.Args[1], InfraID: os.Args[2],
	}, true)
	if err != nil {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, name, zone string
		if _, err := fmt.Sscan(lines.Text(), &verb, &name, &zone); err != nil {
			log.Fatal(err)
		}
		record := &iov1.DNSRecord{Spec: iov1.DNSRecordSpec{
			DNSName: name, RecordType: iov1.ARecordType, RecordTTL: 30, Targets: []string{"203.0.113.1"},
		}}
		call := map[string]func(*iov1.DNSRecord, configv1.DNSZone) error{
			"ensure": provider.Ensure, "delete": provider.Delete,
		}[verb]
		fmt.Printf("%q\n", fmt.Sprint(call(record, configv1.DNSZone{ID: zone})))
	}
}
