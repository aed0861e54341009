#!/usr/bin/env bash
# Prepares Azure and an Azure DevOps project for the pipeline of one stack (docs/guides/pull-requests.md). Run it once
# for each stack, as somebody who may assign roles in Azure, grant permissions of Microsoft Graph, and administer the
# project; `az` is signed in and has its extension azure-devops. It can be repeated, and removes nothing.
#
#   ORGANIZATION=https://dev.azure.com/acme PROJECT=identities STACK=dev REVIEWERS="kim@acme.example" \
#   LOCATION=westeurope TENANT_ID=... SUBSCRIPTION_ID=... BACKEND_ACCOUNT=stidstackdev BACKEND_CONTAINER=pulumi-state \
#   KEY_VAULT=kv-pulumi KEY=pulumi bash docs/guides/bootstrap-azure-devops.sh
#
# REVIEWERS are mail addresses of users. BACKEND_* is where the state is, KEY the Key Vault key that is the stack's
# `secretsprovider`. Sources: learn.microsoft.com/azure/devops, "Manually set workload identity service connections",
# and its REST API ("Endpoints - Create", "Environments - Add", "Check Configurations - Add" and "- List").
set -euo pipefail

missing=()
for name in ORGANIZATION PROJECT STACK REVIEWERS LOCATION TENANT_ID SUBSCRIPTION_ID BACKEND_ACCOUNT BACKEND_CONTAINER \
    KEY_VAULT KEY; do
    [ -n "${!name:-}" ] || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] || { echo "set in the environment: ${missing[*]}" >&2; exit 2; }
group=${RESOURCE_GROUP:-idstack-pipelines} # of the pipelines' identities
idstack=${IDSTACK:-.venv/bin/idstack}
where=(--organization "$ORGANIZATION" --project "$PROJECT")
longest=43200 # minutes that a check may wait: 30 days
body=$(mktemp)
trap 'rm -f "$body"' EXIT

invoke() { # <area> <resource> [argument ...]: a call of Azure DevOps' REST API
    az devops invoke --organization "$ORGANIZATION" --area "$1" --resource "$2" \
        --route-parameters "project=$PROJECT" --api-version 7.1-preview --output tsv "${@:3}"
}

protect() { # <resource type> <resource id> <what tells the check>: makes the check in $body, unless it is there
    [ -n "$(invoke PipelinesChecks configurations --query "value[?$3].id" \
        --query-parameters "resourceType=$1" "resourceId=$2" "\$expand=settings")" ] ||
        invoke PipelinesChecks configurations --query id --http-method POST --in-file "$body" >/dev/null
}

assign() { # <object id> <role> <scope>
    az role assignment create --role "$2" --scope "$3" --assignee-object-id "$1" \
        --assignee-principal-type ServicePrincipal --output none
}

# The custom role that decrypts the state's secrets with the key, and encrypts nothing: no built-in role is as narrow.
# Azure refuses a second one with its name.
state_reader() {
    [ -n "$(az role definition list --name 'idstack state reader' --query '[].name' --output tsv)" ] ||
        az role definition create --output none --role-definition '{"Name": "idstack state reader",
            "Description": "Decrypts what is secret in the state of a stack.", "Actions": [],
            "DataActions": ["Microsoft.KeyVault/vaults/keys/read", "Microsoft.KeyVault/vaults/keys/decrypt/action"],
            "AssignableScopes": ["/subscriptions/'"$SUBSCRIPTION_ID"'"]}'
}

# Microsoft Graph's permission Application.ReadWrite.OwnedBy, unless it is granted: Graph refuses a second grant.
owned_applications() { # <object id>
    local role=18a4783c-866b-4cc7-a460-3d5e5662c884 graph=https://graph.microsoft.com/v1.0/servicePrincipals resource
    resource=$(az rest --method GET --url "$graph(appId='00000003-0000-0000-c000-000000000000')?\$select=id" \
        --query id --output tsv)
    [ -n "$(az rest --method GET --url "$graph/$1/appRoleAssignments" --query "value[?appRoleId=='$role'].id" \
        --output tsv)" ] ||
        az rest --method POST --url "$graph/$1/appRoleAssignments" --output none \
            --body "{\"principalId\":\"$1\",\"resourceId\":\"$resource\",\"appRoleId\":\"$role\"}"
}

container=$(az storage account show --name "$BACKEND_ACCOUNT" --query id --output tsv)
container+=/blobServices/default/containers/$BACKEND_CONTAINER
key=$(az keyvault show --name "$KEY_VAULT" --query id --output tsv)/keys/$KEY
project_id=$(az devops project show "${where[@]}" --query id --output tsv)

# The environment and its check for approvals, each unless it exists: a run may have ended between the two.
environment=$(invoke distributedtask environments --query 'value[0].id' --query-parameters "name=$STACK-approval")
if [ "${environment:-None}" = None ]; then
    printf '{"name": "%s-approval"}' "$STACK" >"$body"
    environment=$(invoke distributedtask environments --query id --http-method POST --in-file "$body")
fi
approvers=()
for reviewer in $REVIEWERS; do
    approvers+=("{\"id\": \"$(az devops user show --organization "$ORGANIZATION" --user "$reviewer" \
        --query id --output tsv)\"}")
done
approval=8c6f20a7-a545-4486-9777-f762fafe0d4d
cat >"$body" <<END
{"type": {"id": "$approval", "name": "Approval"}, "timeout": $longest,
 "settings": {"approvers": [$(IFS=,; printf %s "${approvers[*]}")], "requesterCannotBeApprover": true},
 "resource": {"type": "environment", "id": "$environment"}}
END
protect environment "$environment" "type.id=='$approval'"

az group create --name "$group" --location "$LOCATION" --output none
for purpose in reader deployer; do # the identity that previews, and the one that deploys
    name=idstack-$STACK
    [ "$purpose" = deployer ] || name+=-preview
    az identity create --resource-group "$group" --name "$name" --location "$LOCATION" --output none
    client_id=$(az identity show --resource-group "$group" --name "$name" --query clientId --output tsv)
    object_id=$(az identity show --resource-group "$group" --name "$name" --query principalId --output tsv)
    connection=$(az devops service-endpoint list "${where[@]}" --query "[?name==\`$name\`].id" --output tsv)
    if [ -z "$connection" ]; then
        cat >"$body" <<END
{"name": "$name", "type": "azurerm", "url": "https://management.azure.com/",
 "authorization": {"scheme": "WorkloadIdentityFederation",
  "parameters": {"tenantid": "$TENANT_ID", "serviceprincipalid": "$client_id"}},
 "data": {"environment": "AzureCloud", "scopeLevel": "Subscription", "subscriptionId": "$SUBSCRIPTION_ID",
  "subscriptionName": "$SUBSCRIPTION_ID", "creationMode": "Manual"},
 "serviceEndpointProjectReferences": [{"projectReference": {"id": "$project_id", "name": "$PROJECT"}, "name": "$name"}]}
END
        connection=$(az devops service-endpoint create "${where[@]}" --query id --output tsv \
            --service-endpoint-configuration "$body")
    fi
    if [ "$purpose" = deployer ]; then
        # Only jobs of the branch main may use it, whatever another branch's pipeline contains.
        branches=86b05a0c-73e6-4f7d-b3cf-e38f3b39a75b
        cat >"$body" <<END
{"type": {"id": "fe1de3ee-a436-41b4-bb20-f6eb4cb879a7", "name": "Task Check"}, "timeout": $longest,
 "settings": {"displayName": "Branch control",
  "definitionRef": {"id": "$branches", "name": "evaluatebranchProtection", "version": "0.0.1"},
  "inputs": {"allowedBranches": "refs/heads/main", "ensureProtectionOfBranch": "true"}},
 "resource": {"type": "endpoint", "id": "$connection"}}
END
        protect endpoint "$connection" "settings.definitionRef.id=='$branches'"
    fi
    # Azure DevOps makes up issuer and subject of the connection.
    shown=(az devops service-endpoint show "${where[@]}" --id "$connection" --output tsv)
    az identity federated-credential create --resource-group "$group" --identity-name "$name" --name azure-devops \
        --issuer "$("${shown[@]}" --query authorization.parameters.workloadIdentityFederationIssuer)" \
        --subject "$("${shown[@]}" --query authorization.parameters.workloadIdentityFederationSubject)" \
        --audiences api://AzureADTokenExchange --output none
    "$idstack" rbac --azure "$object_id" --principal-type ServicePrincipal --for "$purpose" --stack "$STACK" | bash -eu
    if [ "$purpose" = deployer ]; then
        assign "$object_id" "Storage Blob Data Contributor" "$container"
        assign "$object_id" "Key Vault Crypto User" "$key"
        owned_applications "$object_id"
    else
        state_reader
        assign "$object_id" "Storage Blob Data Reader" "$container"
        assign "$object_id" "idstack state reader" "$key"
    fi
done

cat <<END
$STACK is prepared. With clusterSide: stack or a hostedCluster, give the deployer its rights on the management cluster:
  $idstack rbac $object_id --principal-type ServicePrincipal --stack $STACK
Add the stack to the parameter \`stacks\` of .azuredevops/azure-pipelines.yml, in the order in which they go up:
  - {name: $STACK, backend: "azblob://$BACKEND_CONTAINER?storage_account=$BACKEND_ACCOUNT"}
Then, once: az pipelines create --name idstack --yaml-path .azuredevops/azure-pipelines.yml ${where[*]}
END
