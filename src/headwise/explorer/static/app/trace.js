/*
 * A trace (a reply of /v1/trace, or the data of a saved page), and the table that a picture shows
 * of it: pieces merged into words, special tokens hidden, heads combined.
 *
 * Weights are sent as whole numbers: weight = low + number · scale / (2^bits − 1), in the order
 * [head][query][key].
 *
 * @typedef {{language: string, pieces: string[], words: string[], word_of_piece: number[], marks:
 *     boolean[]}} Side
 * @typedef {{name: string, kind: string, layer: number, heads: number[], shape: number[], low:
 *     number, scale: number, bits: number, weights: string}} PackedMap
 * @typedef {{text: string, language: string}} Item one word or piece as it is shown
 * @typedef {{rows: Item[], columns: Item[], weights: Float64Array, hidden: Float64Array, signed:
 *     boolean}} Table
 *     weights row by row; hidden[i]: the share of row i that lay on hidden marks
 * @typedef {{item: Item, members: number[], mark: boolean}} Group positions that are shown as one
 *     item
 */

export const KINDS = ["cross", "encoder_self", "decoder_self"];

/**
 * The kinds of attention a model has: a recurrent one looks from the translation to the source
 * alone.
 * @param {any} trace
 */
export const kindsOf = (trace) =>
  KINDS.filter((kind) => trace.attention.some((one) => one.kind === kind));

/**
 * Whether the kind that was asked for is none of the model's, which has others.
 * @param {any} trace
 */
export const isOtherKind = (trace) => trace.maps.length === 0 && trace.attention.length > 0;

/** The side whose pieces attend (rows). @param {any} trace @param {string} kind @returns {Side} */
export const querySide = (trace, kind) => (kind === "encoder_self" ? trace.source : trace.target);

/** The side attended to (columns). @param {any} trace @param {string} kind @returns {Side} */
export const keySide = (trace, kind) =>
  kind === "decoder_self" ? trace.target_input : trace.source;

/**
 * The maps of one kind, lowest layer first.
 * @param {any} trace
 * @param {string} kind
 * @returns {PackedMap[]}
 */
export function mapsOf(trace, kind) {
  return trace.maps
    .filter((map) => map.kind === kind)
    .sort((one, other) => one.layer - other.layer);
}

/** @type {WeakMap<PackedMap, Uint8Array | Uint16Array>} unpacked once, kept as long as the map */
const unpacked = new WeakMap();

/** The whole numbers of a map. @param {PackedMap} map */
function numbersOf(map) {
  let numbers = unpacked.get(map);
  if (!numbers) {
    const text = atob(map.weights);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    numbers = map.bits === 16 ? new Uint16Array(bytes.buffer) : bytes;
    unpacked.set(map, numbers);
  }
  return numbers;
}

/**
 * Positions as they are shown: each piece by itself, or the pieces of a word together.
 * @param {Side} side
 * @param {string} level
 * @returns {Group[]}
 */
export function groupsOf(side, level) {
  if (level === "piece") {
    return side.pieces.map((text, place) => ({
      item: { text, language: side.language },
      members: [place],
      mark: side.marks[place],
    }));
  }
  /** @type {Group[]} */
  const groups = side.words.map((text) => ({
    item: { text, language: side.language },
    members: [],
    mark: false,
  }));
  side.word_of_piece.forEach((word, place) => {
    groups[word].members.push(place);
    groups[word].mark = side.marks[place];
  });
  return groups;
}

/**
 * One head over groups: sum over the keys of a group, mean over its queries, so rows keep their
 * sums.
 * @param {PackedMap} map @param {number} head @param {Group[]} rows @param {Group[]} columns
 */
function mergedHead(map, head, rows, columns) {
  const [, numQueries, numKeys] = map.shape;
  const numbers = numbersOf(map);
  const unit = map.scale / (2 ** map.bits - 1);
  const table = new Float64Array(rows.length * columns.length);
  if (rows.length === numQueries && columns.length === numKeys) {
    // every group is one piece: nothing to merge
    const start = head * numQueries * numKeys;
    for (let place = 0; place < table.length; place += 1)
      table[place] = map.low + numbers[start + place] * unit;
    return table;
  }
  for (let i = 0; i < rows.length; i += 1) {
    const { members } = rows[i];
    for (const query of members) {
      const start = (head * numQueries + query) * numKeys;
      for (let j = 0; j < columns.length; j += 1) {
        let sum = 0;
        for (const key of columns[j].members) sum += numbers[start + key];
        table[i * columns.length + j] +=
          (map.low * columns[j].members.length + sum * unit) / members.length;
      }
    }
  }
  return table;
}

/**
 * Take hidden columns out: what remains of a row is scaled to its old sum, and the share that went
 * is kept to be told. Signed weights are no shares and stay.
 * @param {Float64Array} whole
 * @param {number} numRows
 * @param {number[]} kept
 * @param {boolean} signed
 */
function withoutHidden(whole, numRows, kept, signed) {
  const numAll = whole.length / numRows;
  if (kept.length === numAll) return { weights: whole, hidden: new Float64Array(numRows) };
  const weights = new Float64Array(numRows * kept.length);
  const hidden = new Float64Array(numRows);
  for (let i = 0; i < numRows; i += 1) {
    const row = whole.subarray(i * numAll, (i + 1) * numAll);
    const total = row.reduce((sum, weight) => sum + weight, 0);
    const visible = kept.reduce((sum, place) => sum + row[place], 0);
    hidden[i] = !signed && total > 0 ? 1 - visible / total : 0;
    kept.forEach((place, j) => {
      weights[i * kept.length + j] = signed
        ? row[place]
        : visible > 0
          ? (row[place] * total) / visible
          : 0;
    });
  }
  return { weights, hidden };
}

/**
 * The groups to show; a side of nothing but marks keeps them.
 * @param {Group[]} groups
 * @param {boolean} hideMarks
 */
function visible(groups, hideMarks) {
  const words = hideMarks ? groups.filter((group) => !group.mark) : groups;
  return words.length ? words : groups;
}

/**
 * The table of a choice. Words are merged and marks hidden in each head, then heads and layers are
 * put together, so
 * that a maximum over heads stays a weight.
 * @param {any} trace @param {PackedMap[]} maps one layer, or several to be put together
 * @param {{head: string, level: string, hideMarks: boolean}} choice head: a number, "mean" or
 *     "max"
 * @returns {Table}
 */
export function makeTable(trace, maps, { head, level, hideMarks }) {
  const { kind } = maps[0];
  const rows = visible(groupsOf(querySide(trace, kind), level), hideMarks);
  const all = groupsOf(keySide(trace, kind), level);
  const columns = visible(all, hideMarks);
  const kept = columns.map((group) => all.indexOf(group));
  const signed = maps.some((map) => map.low < 0);
  const weights = new Float64Array(rows.length * columns.length);
  const hidden = new Float64Array(rows.length);
  const chosen = maps.flatMap((map) => {
    const places =
      head === "mean" || head === "max"
        ? map.heads.map((_, place) => place)
        : [map.heads.indexOf(Number(head))];
    return places.filter((place) => place >= 0).map((place) => ({ map, place }));
  });
  if (chosen.length === 1) {
    return {
      rows: rows.map((group) => group.item),
      columns: columns.map((group) => group.item),
      ...withoutHidden(
        mergedHead(chosen[0].map, chosen[0].place, rows, all),
        rows.length,
        kept,
        signed,
      ),
      signed,
    };
  }
  for (const { map, place } of chosen) {
    const one = withoutHidden(mergedHead(map, place, rows, all), rows.length, kept, map.low < 0);
    for (let i = 0; i < hidden.length; i += 1) hidden[i] += one.hidden[i] / chosen.length;
    for (let i = 0; i < weights.length; i += 1) {
      if (head !== "max") weights[i] += one.weights[i] / chosen.length;
      else if (Math.abs(one.weights[i]) > Math.abs(weights[i])) weights[i] = one.weights[i];
    }
  }
  return {
    rows: rows.map((group) => group.item),
    columns: columns.map((group) => group.item),
    weights,
    hidden,
    signed: maps.some((map) => map.low < 0),
  };
}

/** The one farther from zero. @param {number} one @param {number} other */
const farther = (one, other) => (Math.abs(other) > Math.abs(one) ? other : one);

/**
 * The weight that row i gives to column j.
 * @param {Table} table
 * @param {number} i
 * @param {number} j
 */
export const weightAt = (table, i, j) => table.weights[i * table.columns.length + j];
