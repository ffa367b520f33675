// An MCP server on the official SDK that accepts only tokens of an issuer for its own audience. Prints its URL.
// Arguments: the issuer, the audience. Its tool `whoami` tells whose token it received, and which.

import { createHash } from 'node:crypto'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import express from 'express'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const [issuer, audience] = process.argv.slice(2)
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))

const verifier = {
  async verifyAccessToken(token) {
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience })
      return { token, clientId: payload.client_id, scopes: (payload.scope ?? '').split(' '), expiresAt: payload.exp, extra: { sub: payload.sub } }
    } catch (error) {
      throw new InvalidTokenError(String(error))
    }
  },
}

function mcpServer() {
  const server = new McpServer({ name: 'whoami', version: '1' })
  server.registerTool('whoami', { description: 'Whose token this is.' }, ({ authInfo }) => {
    const digest = createHash('sha256').update(authInfo.token).digest('hex').slice(0, 12)
    return { content: [{ type: 'text', text: `${authInfo.extra.sub} [${authInfo.scopes.join(' ')}] ${digest}` }] }
  })
  return server
}

const app = express()
app.use(express.json())
app.all('/mcp', requireBearerAuth({ verifier }), async (request, response) => {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await mcpServer().connect(transport)
  await transport.handleRequest(request, response, request.body)
})
const listener = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`))
