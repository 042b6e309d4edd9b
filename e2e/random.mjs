// A small seeded generator of random choices: the same seed gives the same choices on every machine.

export class Random {
  #state

  constructor(seed) {
    this.#state = seed >>> 0
  }

  /** The generator of the case `index` of a run, so that one case can be made again alone. */
  static of(seed, index) {
    const random = new Random(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35))
    random.below(2)
    return random
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  below(limit) {
    return Math.floor(this.next() * limit)
  }

  chance(probability) {
    return this.next() < probability
  }

  pick(items) {
    return items[this.below(items.length)]
  }

  shuffle(items) {
    const copy = [...items]
    for (let i = copy.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[copy[i], copy[j]] = [copy[j], copy[i]]
    }
    return copy
  }

  /** Between `least` and `most` of the items, in random order. */
  some(items, least, most) {
    return this.shuffle(items).slice(0, least + this.below(most - least + 1))
  }
}
