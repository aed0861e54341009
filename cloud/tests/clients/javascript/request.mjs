// Makes one request with the credential of its environment and prints the status of the answer.
//
// Usage: node request.mjs <scope> <method> <url> [<body>]. Nothing in it knows the local cloud: proxy, certificate
// authority and credential come from the environment, as for any program of Azure's SDK for JavaScript.
import { createDefaultHttpClient, createPipelineFromOptions, createPipelineRequest } from "@azure/core-rest-pipeline";
import { EnvironmentCredential } from "@azure/identity";

const [scope, method, url, body] = process.argv.slice(2);
const token = await new EnvironmentCredential().getToken(scope);
const request = createPipelineRequest({ url, method, body: body || undefined });
request.headers.set("Authorization", `Bearer ${token.token}`);
request.headers.set("Content-Type", "application/json");
const answer = await createPipelineFromOptions({}).sendRequest(createDefaultHttpClient(), request);
console.log(answer.status);
