// A site whose store can be taken away while it runs: PostgreSQL behind a proxy that stops.

import { database } from '../postgres.mjs'
import { openProxy } from '../proxy.mjs'
import { Site } from './site.mjs'

export class Away extends Site {
  /** Serves the application in `folder`. */
  async open([folder]) {
    const store = new URL(await database())
    this.proxy = await openProxy(`http://${store.host}`)
    store.host = new URL(this.proxy.url).host
    await super.open([folder, '--database', store.href])
  }

  /** From now on there is no store. */
  leave() {
    this.proxy.refuse(true)
    this.proxy.cut()
  }

  async close() {
    await super.close()
    await this.proxy?.close()
  }
}
