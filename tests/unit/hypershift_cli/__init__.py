"""What HyperShift's CLI takes from a stack and makes of it, beside what it printed for these values.

`infra.json` is what the stack exports. `hosted-cluster.yaml` is the HostedCluster that the CLI of openshift/hypershift
at 3ee9615 printed for it, without a request to Azure or Kubernetes:

    hypershift create cluster azure --name hc1 --infra-json infra.json \
      --oidc-issuer-url https://hc1oidc.blob.core.windows.net/hc1oidc \
      --kms-credentials-secret-name kms-hc1-json \
      --encryption-key-id https://kv-etcd-dev.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef \
      --external-dns-domain control-planes.example.com \
      --annotations hypershift.openshift.io/pod-security-admission-label-override=baseline \
      --release-image quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64 --pull-secret <file> \
      --azure-creds <file> --sa-token-issuer-private-key-path <file> --render

`workload-identities/` has the same of a self-managed cluster, without the first flag of KMS and with

    --endpoint-access PublicAndPrivate --endpoint-access-private-nat-subnet-id <id of the subnet>
"""
