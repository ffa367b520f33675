// An authorization server on `oidc-provider`, with token exchange (RFC 8693) as a grant type of its own. Prints its URL.
// `GET /user-token?sub=…&aud=…&ttl=…` stands for the sign-in of a user. `GET /exchanges` counts the exchanges.

import http from 'node:http'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import Provider from 'oidc-provider'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const GATEWAY = 'https://gateway.test/mcp'

const server = http.createServer()
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const issuer = `http://127.0.0.1:${server.address().port}`
const { privateKey } = await generateKeyPair('RS256', { extractable: true })

const provider = new Provider(issuer, {
  clients: [{ client_id: 'gateway', client_secret: 'the secret: of+gateway', grant_types: [GRANT], redirect_uris: [], response_types: [] }],
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'one' }] },
  features: { devInteractions: { enabled: false } },
  cookies: { keys: ['k'] },
})

function accessToken(client, sub, audience, ttl, scope) {
  const token = new provider.AccessToken({ accountId: sub, client, scope })
  token.resourceServer = new provider.ResourceServer(audience, {
    audience, scope: scope ?? '', accessTokenFormat: 'jwt', accessTokenTTL: ttl, jwt: { sign: { alg: 'RS256' } },
  })
  return token.save()
}

let exchanges = 0
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
provider.registerGrantType(GRANT, async (ctx) => {
  exchanges += 1
  const { params, client } = ctx.oidc
  const refuse = (error) => {
    ctx.status = 400
    // A careless server repeats the token in its description.
    ctx.body = { error, error_description: `refused: ${params.subject_token}` }
  }
  if (params.subject_token_type !== ACCESS_TOKEN) return refuse('invalid_request')
  let subject
  try {
    subject = (await jwtVerify(params.subject_token, keys, { issuer, audience: GATEWAY })).payload
  } catch {
    return refuse('invalid_grant')
  }
  if (subject.sub === 'mallory') return refuse('invalid_target')
  const token = await accessToken(client, subject.sub, params.resource ?? params.audience, 120, params.scope)
  ctx.body = { access_token: token, issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', expires_in: 120 }
}, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'])

const handle = provider.callback()
server.on('request', async (request, response) => {
  const url = new URL(request.url, issuer)
  if (url.pathname === '/user-token') {
    const client = await provider.Client.find('gateway')
    const get = (name) => url.searchParams.get(name)
    response.end(await accessToken(client, get('sub'), get('aud'), Number(get('ttl') ?? 300)))
  } else if (url.pathname === '/exchanges') {
    response.end(String(exchanges))
  } else {
    handle(request, response)
  }
})
console.log(issuer)
