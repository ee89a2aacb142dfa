/*
 * The positions of the nodes of a beam search: one column for each step, and in it the
 * continuations that were considered, those of the most probable hypothesis on top. A line leads
 * from each to the hypothesis it continues, so that changes of rank are visible from step to step.
 */

/**
 * @typedef {{number: number, parent: number, step: number, piece: string, total: number, score:
 *     number, log_probability: number, fate: string}} Node
 * @typedef {Node & {x: number, row: number, width: number, children: Placed[], above: Placed |
 *     null, isBest: boolean, element?: any}} Placed
 * @param {Node[]} nodes in the order they were weighed
 * @param {number[]} leaves of the n best, best first
 * @param {{pruned: boolean, measure: (piece: string) => number}} options pruned: whether to
 *     show what was let go
 * @returns {{placed: Placed[], rows: number, width: number, starts: number[]}} starts: where
 *     each column begins
 */
export function layOut(nodes, leaves, { pruned, measure }) {
  const parents = new Map(nodes.map((node) => [node.number, node.parent]));
  const best = new Set();
  for (let number = leaves[0]; number; number = parents.get(number)) best.add(number);
  /** @type {Map<number, any>} */
  const byNumber = new Map([[0, { number: 0, children: [], step: 0, row: 0, above: null }]]);
  /** @type {any[]} */
  const placed = [];
  const [rows, widths] = [[0], [0]];
  for (const node of nodes) {
    if (node.fate === "pruned" && !pruned) continue;
    const above = byNumber.get(node.parent);
    const row = rows[node.step] ?? 0;
    const one = {
      ...node,
      x: 0,
      row,
      width: Math.max(32, Math.ceil(measure(node.piece)) + 18),
      children: [],
      above,
      isBest: best.has(node.number),
    };
    rows[node.step] = row + 1;
    widths[node.step] = Math.max(widths[node.step] ?? 0, one.width);
    byNumber.set(node.number, one);
    above.children.push(one);
    placed.push(one);
  }
  const starts = [0];
  for (let step = 1; step < widths.length; step += 1)
    starts[step] = step === 1 ? 44 : starts[step - 1] + widths[step - 1] + 44;
  for (const one of placed) one.x = starts[one.step];
  const last = starts.length - 1;
  return {
    placed,
    rows: Math.max(...rows),
    width: (starts[last] ?? 0) + (widths[last] ?? 32) + 16,
    starts,
  };
}
