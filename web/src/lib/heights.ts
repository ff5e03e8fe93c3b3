// Heights of many rows of which few are seen: a Fenwick tree, so that a position is found and a
// height changed in a few steps.

export class Heights {
  #heights: Float64Array
  #tree: Float64Array
  #length = 0

  constructor(capacity = 1024) {
    this.#heights = new Float64Array(capacity)
    this.#tree = new Float64Array(capacity + 1)
  }

  get length(): number {
    return this.#length
  }

  get total(): number {
    return this.offset(this.#length)
  }

  /** Begin anew with these heights. */
  fill(length: number, heightOf: (at: number) => number): void {
    if (length > this.#heights.length) {
      this.#heights = new Float64Array(length * 2)
      this.#tree = new Float64Array(length * 2 + 1)
    } else {
      this.#tree.fill(0)
    }
    this.#length = length
    for (let at = 0; at < length; at++) this.#heights[at] = heightOf(at)
    for (let node = 1; node < this.#tree.length; node++) {
      if (node <= length) this.#tree[node]! += this.#heights[node - 1]!
      const parent = node + (node & -node)
      if (parent < this.#tree.length) this.#tree[parent]! += this.#tree[node]!
    }
  }

  push(height: number): void {
    if (this.#length === this.#heights.length) {
      const before = this.#heights.slice(0, this.#length)
      this.#heights = new Float64Array(0)
      this.fill(before.length, (at) => before[at]!)
    }
    const at = this.#length++
    this.#heights[at] = height
    this.#add(at, height)
  }

  get(at: number): number {
    return this.#heights[at]!
  }

  /** Returns by how much the row has grown. */
  set(at: number, height: number): number {
    const grown = height - this.#heights[at]!
    if (grown === 0) return 0
    this.#heights[at] = height
    this.#add(at, grown)
    return grown
  }

  /** Where a row begins. */
  offset(at: number): number {
    let sum = 0
    for (let node = at; node > 0; node -= node & -node) sum += this.#tree[node]!
    return sum
  }

  /** The row at a position. */
  at(position: number): number {
    let found = 0
    let rest = position
    let step = 1
    while (step * 2 < this.#tree.length) step *= 2
    for (; step > 0; step >>= 1) {
      const next = found + step
      if (next < this.#tree.length && this.#tree[next]! <= rest) {
        found = next
        rest -= this.#tree[next]!
      }
    }
    return Math.max(0, Math.min(found, this.#length - 1))
  }

  #add(at: number, grown: number): void {
    for (let node = at + 1; node < this.#tree.length; node += node & -node) {
      this.#tree[node]! += grown
    }
  }
}
