"""The symptoms of sign-ins: codes of Entra ID (learn.microsoft.com/entra/identity-platform/reference-error-codes)."""

from __future__ import annotations

from functools import partial
from typing import Final

from identity.credentials.symptom import Family, Symptom

_SIGN_INS: Final = "the sign-in logs of the service principal in Entra ID"
_FEDERATION: Final = (
    "`az ad app federated-credential list --id <client id>`, beside `iss`, `sub` and `aud` of the token"
)
_ISSUER: Final = "compare it with `docs/explanation/issuer.md`, then {repair}"
_ISSUERS_KEY: Final = "have the federated token signed with a key that its issuer publishes"
_SECOND_FACTOR: Final = "the tenant asks for a second factor: sign in with `az login`, or use a service principal"

_symptom = partial(Symptom, family=Family.ENTRA_ID)

ROWS: Final = (
    _symptom(
        name="AADSTS700027",
        cause="the certificate is not registered on the application",
        evidence="`az ad app credential list --cert --id <client id>`, beside the thumbprint in `idstack status`",
        fix="if somebody removed it because its key leaked, rotate with `--revoke --now`; otherwise {repair} registers "
        "it again",
        login="register the certificate on the application, or sign in with the one that is registered",
    ),
    _symptom(
        name="AADSTS7000112",
        cause="the service principal is disabled",
        evidence="`az ad sp show --id <client id> --query accountEnabled`, and the audit log for who disabled it",
        fix="enable it: `az ad sp update --id {client} --set accountEnabled=true`",
    ),
    _symptom(
        name="AADSTS700016",
        cause="the tenant has no such application",
        evidence="`az ad app show --id <client id>`, signed in to this tenant and to others",
        fix="{recover} makes another application, with a new credential and its roles",
        login="correct the client id, or the tenant: the application is not in this one",
    ),
    _symptom(
        name="AADSTS7000229",
        cause="the application has no service principal in this tenant",
        evidence="`az ad sp show --id <client id>`",
        fix="{repair} makes it again",
        login="create the application's service principal in this tenant (`az ad sp create --id <client id>`)",
    ),
    _symptom(
        name="AADSTS7000222",
        cause="the certificate or client secret has expired",
        evidence="`idstack status`, column with the end of the certificate",
        fix="deliver another certificate: {renewal}",
        login="the secret has expired: make a new one",
    ),
    _symptom(
        name="AADSTS700024",
        cause="the assertion is not valid yet, or no longer: a clock is wrong, or a federated token is too old",
        evidence="`date -u` on the node and here",
        fix="correct the clock of the node",
        login="the federated token is too old: have it renewed, and check this machine's clock",
    ),
    _symptom(
        name="AADSTS90002",
        cause="there is no such tenant in this cloud",
        evidence="`tenantId` of the stack's file, and `az account show --query tenantId`",
        fix="correct `tenantId`, then {up}",
        login="correct the tenant, or the authority host if the tenant is in another cloud",
    ),
    _symptom(
        name="AADSTS900023",
        cause="the tenant is neither an id nor a domain name",
        evidence="`tenantId` of the stack's file",
        fix="correct `tenantId`, then {up}",
        login="correct the tenant: it is neither an id nor a domain name",
    ),
    _symptom(
        name="AADSTS53003",
        cause="a Conditional Access policy refuses the sign-in",
        evidence=f"{_SIGN_INS}, which name the policy",
        fix="change the policy for workload identities so that it admits the identity from the nodes' addresses",
        login="Conditional Access forbids this way to sign in: use a service principal or `--login azure-cli`",
    ),
    _symptom(
        name="AADSTS7000215",
        cause="the client secret is wrong",
        evidence="the value that the client sends, beside the secret's id in the portal",
        fix="configure the value of the secret, not its id",
    ),
    _symptom(
        name="AADSTS70021",
        cause="no federated credential of the identity fits the token",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's issuer, subject and audience to the identity",
    ),
    _symptom(
        name="AADSTS700211",
        cause="no federated credential has the token's issuer: HyperShift's default issuer, or a trailing slash",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's issuer to the identity",
    ),
    _symptom(
        name="AADSTS700213",
        cause="no federated credential has the token's subject, which is the service account",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's subject to the identity",
    ),
    _symptom(
        name="AADSTS7002138",
        cause="the token's subject differs from the federated credential's in letter case",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="correct the letter case of the federated credential's subject: it has to be as in the token",
    ),
    _symptom(
        name="AADSTS700212",
        cause="no federated credential has the token's audience (`openshift` in a hosted cluster)",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="have the token issued for the audience of the federated credential (api://AzureADTokenExchange)",
    ),
    _symptom(
        name="AADSTS7000272",
        cause="the issuer does not publish the key that signed the token",
        evidence="`curl <issuerURL>/openid/v1/jwks`, and `serviceAccountSigningKey` of the HostedCluster",
        fix="give the HostedCluster the signing key whose public half the issuer publishes, then {repair}",
        login=_ISSUERS_KEY,
    ),
    _symptom(
        name="AADSTS50013",
        cause="the signature of the assertion cannot be verified",
        evidence="`curl <issuerURL>/openid/v1/jwks`, and the key id in the token's header",
        fix="give the HostedCluster the signing key whose public half the issuer publishes, then {repair}",
        login=_ISSUERS_KEY,
    ),
    _symptom(
        name="AADSTS90061",
        cause="Entra ID cannot reach the issuer's documents",
        evidence="`curl <issuerURL>/.well-known/openid-configuration` from outside of your network",
        fix="open the issuer's storage account to the public, then {repair}",
        login="make the issuer's metadata public: Entra ID does not reach it",
    ),
    _symptom(
        name="AADSTS500011",
        cause="the tenant does not know the resource that the token is for",
        evidence="`cloud` of the stack's file, and the authority host",
        fix="correct `cloud`, then {up}",
        login="the tenant does not know the server application: give the authority host of the cluster's cloud",
    ),
    _symptom(
        name="AADSTS50076",
        cause="the tenant asks this person for a second factor",
        evidence="the sign-in logs of the person in Entra ID",
        fix=_SECOND_FACTOR,
    ),
    _symptom(
        name="AADSTS50079",
        cause="the person has not registered a second factor yet, and the tenant asks for one",
        evidence="the sign-in logs of the person in Entra ID",
        fix=_SECOND_FACTOR,
    ),
    _symptom(
        name="AADSTS50105",
        cause="the application lets in only those who are assigned to it",
        evidence="users and groups of the enterprise application in Entra ID",
        fix="assign the identity to the server application, which lets nobody else in",
    ),
)
