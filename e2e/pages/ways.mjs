// How a journey is tried twice: with the script of the pages, and in a browser that runs none.

import { describe, test } from 'node:test'

/** Runs `journeys(journey)` with script and without; `journey(name, body)` is a test whose body is given `(t, options)`. */
export function bothWays(journeys) {
  for (const javaScriptEnabled of [true, false]) {
    describe(javaScriptEnabled ? 'with script' : 'without script', () => {
      const journey = (name, body) => test(name, (t) => body(t, { javaScriptEnabled }))
      journeys(journey, javaScriptEnabled ? 'scripted' : 'plain')
    })
  }
}
