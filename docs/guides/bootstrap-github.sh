#!/usr/bin/env bash
# Prepares Azure and a GitHub repository for the workflows of one stack (docs/guides/pull-requests.md). Run it once for
# each stack, as somebody who may assign roles in Azure, grant permissions of Microsoft Graph, and administer the
# repository; `az` and `gh` are signed in. It can be repeated, and removes nothing.
#
#   REPOSITORY=acme/identities STACK=dev REVIEWERS="acme/operators kim" LOCATION=westeurope \
#   TENANT_ID=... SUBSCRIPTION_ID=... BACKEND_ACCOUNT=stidstackdev BACKEND_CONTAINER=pulumi-state \
#   KEY_VAULT=kv-pulumi KEY=pulumi bash docs/guides/bootstrap-github.sh
#
# REVIEWERS are users, or teams as <organization>/<team>. BACKEND_* is where the state is, KEY the Key Vault key that is
# the stack's `secretsprovider`. Sources: docs.github.com, "REST API endpoints for deployment environments",
# "... for deployment branch policies" and "OpenID Connect reference".
set -euo pipefail

missing=()
for name in REPOSITORY STACK REVIEWERS LOCATION TENANT_ID SUBSCRIPTION_ID BACKEND_ACCOUNT BACKEND_CONTAINER \
    KEY_VAULT KEY; do
    [ -n "${!name:-}" ] || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] || { echo "set in the environment: ${missing[*]}" >&2; exit 2; }
group=${RESOURCE_GROUP:-idstack-pipelines} # of the pipelines' identities
idstack=${IDSTACK:-.venv/bin/idstack}
issuer=https://token.actions.githubusercontent.com
environments="repos/$REPOSITORY/environments"

# An environment with this body. Only jobs of the branch main may use it, if its body says so.
environment() { # <name> <body>
    printf %s "$2" | gh api --silent --method PUT "$environments/$1" --input -
    [[ $2 != *'"custom_branch_policies":true'* ]] ||
        [ -n "$(gh api "$environments/$1/deployment-branch-policies" \
            --jq '.branch_policies[] | select(.name == "main") | .id')" ] ||
        gh api --silent --method POST "$environments/$1/deployment-branch-policies" --raw-field name=main
}

trust() { # <identity> <name> <subject>: tokens with this subject sign in as the identity
    az identity federated-credential create --resource-group "$group" --identity-name "$1" --name "$2" \
        --issuer "$issuer" --subject "$3" --audiences api://AzureADTokenExchange --output none
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
# Newer repositories are known to Entra ID by their names with their ids.
by_ids=$(gh api "repos/$REPOSITORY" --jq '"\(.owner.login)@\(.owner.id)/\(.name)@\(.id)"')
on_main='{"protected_branches":false,"custom_branch_policies":true}'

# Who approves.
approvers=()
for reviewer in $REVIEWERS; do
    kind=User path=users/$reviewer
    [[ $reviewer != */* ]] || { kind=Team path=orgs/${reviewer%%/*}/teams/${reviewer#*/}; }
    approvers+=("$(gh api "$path" --jq '"{\"type\":\"'"$kind"'\",\"id\":\(.id)}"')")
done
listed=$(IFS=,; printf %s "${approvers[*]}")
environment "$STACK-approval" \
    '{"reviewers":['"$listed"'],"prevent_self_review":true,"deployment_branch_policy":'"$on_main"'}'

az group create --name "$group" --location "$LOCATION" --output none
for purpose in reader deployer; do # the identity that previews, and the one that deploys
    name=$STACK policy=$on_main
    [ "$purpose" = deployer ] || name=$STACK-preview policy=null
    environment "$name" '{"deployment_branch_policy":'"$policy"'}'
    identity=idstack-$name
    az identity create --resource-group "$group" --name "$identity" --location "$LOCATION" --output none
    client_id=$(az identity show --resource-group "$group" --name "$identity" --query clientId --output tsv)
    object_id=$(az identity show --resource-group "$group" --name "$identity" --query principalId --output tsv)
    trust "$identity" github "repo:$REPOSITORY:environment:$name"
    trust "$identity" github-by-ids "repo:$by_ids:environment:$name"
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
    for variable in "ARM_CLIENT_ID=$client_id" "ARM_TENANT_ID=$TENANT_ID" "ARM_SUBSCRIPTION_ID=$SUBSCRIPTION_ID" \
        "PULUMI_BACKEND_URL=azblob://$BACKEND_CONTAINER?storage_account=$BACKEND_ACCOUNT"; do
        gh variable set "${variable%%=*}" --repo "$REPOSITORY" --env "$name" --body "${variable#*=}"
    done
done

cat <<END
$STACK is prepared. With clusterSide: stack or a hostedCluster, give the deployer its rights on the management cluster:
  $idstack rbac $object_id --principal-type ServicePrincipal --stack $STACK
When every stack is prepared, name them in the order in which they go up; this enables the workflows:
  gh variable set IDSTACK_STACKS --repo $REPOSITORY --body '["$STACK"]'
END
