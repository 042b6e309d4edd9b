// Asks a GraphQL server over HTTP on connections that are kept open.

import { Agent, request } from 'node:http'

export class Client {
  constructor(url, connections = 8) {
    this.url = url
    this.agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  /** Answers with the status and the parsed body. */
  async post(body, headers = {}) {
    const text = JSON.stringify(body)
    const { status, text: reply } = await this.send('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json', ...headers },
      body: text,
    })
    try {
      return { status, body: JSON.parse(reply) }
    } catch {
      throw new Error(`answered ${status} with no JSON: ${reply.slice(0, 500)}\nto ${text}`)
    }
  }

  async get(path) {
    return (await this.send(path, { method: 'GET' })).text
  }

  send(path, { method, headers, body }) {
    return new Promise((resolve, reject) => {
      const sent = request(new URL(path, this.url), { method, headers, agent: this.agent }, (response) => {
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk)).on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') }))
      })
      sent.on('error', reject).end(body)
    })
  }

  close() {
    this.agent.destroy()
  }
}
