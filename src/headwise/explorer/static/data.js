"use strict";
/*
 * The data of the page: what Python wrote, and what a view shows of it.
 *
 * The files data, links, heat_map, overview and page are put one after the other into a single module script,
 * so they see each other's functions and nothing outside sees theirs.
 */

/**
 * The pieces of one side of a translation.
 * @typedef {{language: string, pieces: string[], words: string[], word_of_piece: number[], marks: boolean[]}} Side
 * The weights of one layer, one byte each: weight = low + byte * scale / 255, order [head][query][key]; low is below 0 if some are.
 * @typedef {{name: string, kind: string, layer: number, shape: number[], low: number, scale: number, weights: string}} PackedMap
 * @typedef {{title: string, source_text: string, target_text: string, source: Side, target: Side,
 *            target_input: Side, maps: PackedMap[]}} Trace
 * One word or piece as it is shown.
 * @typedef {{text: string, language: string}} Item
 * A table to show; weights are row by row; hidden[i] is the share of row i that was on hidden marks.
 * @typedef {{rows: Item[], columns: Item[], weights: Float64Array, hidden: Float64Array, signed: boolean}} View
 * A group of positions that is shown as one item.
 * @typedef {{item: Item, members: number[], mark: boolean}} Group
 */

const KINDS = ["encoder_self", "decoder_self", "cross"];

/** The JSON of a data block of the page. @param {string} id */
function readBlock(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** The side whose pieces look (rows of the table). @param {Trace} trace @param {string} kind @returns {Side} */
function querySide(trace, kind) {
  return kind === "encoder_self" ? trace.source : trace.target;
}

/** The side that is looked at (columns). @param {Trace} trace @param {string} kind @returns {Side} */
function keySide(trace, kind) {
  return kind === "decoder_self" ? trace.target_input : trace.source;
}

/** The maps of one kind, lowest layer first. @param {Trace} trace @param {string} kind @returns {PackedMap[]} */
function mapsOf(trace, kind) {
  return trace.maps.filter((map) => map.kind === kind).sort((one, other) => one.layer - other.layer);
}

/** @type {WeakMap<PackedMap, Uint8Array>} decoded once, kept as long as the map */
const decodedMaps = new WeakMap();

/** The bytes of a map. @param {PackedMap} map @returns {Uint8Array} */
function bytesOf(map) {
  let bytes = decodedMaps.get(map);
  if (!bytes) {
    bytes = Uint8Array.from(atob(map.weights), (character) => character.charCodeAt(0));
    decodedMaps.set(map, bytes);
  }
  return bytes;
}

/** Positions as they are shown: each piece by itself, or the pieces of a word together. @param {Side} side @param {string} level @returns {Group[]} */
function groupsOf(side, level) {
  if (level === "piece") {
    return side.pieces.map((text, place) => ({
      item: { text, language: side.language }, members: [place], mark: side.marks[place],
    }));
  }
  /** @type {Group[]} */
  const groups = side.words.map((text) => ({ item: { text, language: side.language }, members: [], mark: false }));
  side.word_of_piece.forEach((word, place) => {
    groups[word].members.push(place);
    groups[word].mark = side.marks[place];
  });
  return groups;
}

/**
 * One head over groups: sum over the keys of a group, mean over its queries, so rows keep their sums.
 * @param {PackedMap} map @param {number} head @param {Group[]} rows @param {Group[]} columns @returns {Float64Array}
 */
function mergedHead(map, head, rows, columns) {
  const [, numQueries, numKeys] = map.shape;
  const bytes = bytesOf(map);
  const table = new Float64Array(rows.length * columns.length);
  rows.forEach((row, i) => columns.forEach((column, j) => {
    let sum = 0;
    for (const query of row.members) {
      const start = (head * numQueries + query) * numKeys;
      for (const key of column.members) sum += bytes[start + key];
    }
    table[i * columns.length + j] = map.low * column.members.length + (sum * map.scale) / 255 / row.members.length;
  }));
  return table;
}

/**
 * Take the columns of hidden marks out of one head: what remains of a row is scaled to the row's old sum, and the
 * share that was hidden is kept to be told. Signed weights are no shares: they stay as they are.
 * @param {Float64Array} whole @param {number} numRows @param {number[]} kept places of the columns that stay @param {boolean} signed
 */
function withoutHidden(whole, numRows, kept, signed) {
  const numAll = whole.length / numRows;
  const weights = new Float64Array(numRows * kept.length);
  const hidden = new Float64Array(numRows);
  for (let i = 0; i < numRows; i += 1) {
    const row = whole.subarray(i * numAll, (i + 1) * numAll);
    const total = row.reduce((sum, weight) => sum + weight, 0);
    const visible = kept.reduce((sum, place) => sum + row[place], 0);
    hidden[i] = !signed && total > 0 ? 1 - visible / total : 0;
    kept.forEach((place, j) => {
      weights[i * kept.length + j] = signed ? row[place] : visible > 0 ? (row[place] * total) / visible : 0;
    });
  }
  return { weights, hidden };
}

/**
 * What to show: words are merged and marks hidden in each head, then the heads are put together, so that the
 * maximum over heads stays a weight.
 * @param {Trace} trace @param {PackedMap} map
 * @param {{head: string, level: string, hideMarks: boolean}} choice head: a number, "mean" or "max" @returns {View}
 */
function makeView(trace, map, choice) {
  const shown = (/** @type {Group[]} */ groups) => {
    const words = groups.filter((group) => !(choice.hideMarks && group.mark));
    return words.length ? words : groups; // an empty translation is nothing but marks: then they stay
  };
  const rows = shown(groupsOf(querySide(trace, map.kind), choice.level));
  const all = groupsOf(keySide(trace, map.kind), choice.level);
  const columns = shown(all);
  const kept = columns.map((group) => all.indexOf(group));
  const together = choice.head === "mean" || choice.head === "max";
  const heads = together ? Array.from({ length: map.shape[0] }, (_, head) => head) : [Number(choice.head)];
  const weights = new Float64Array(rows.length * columns.length);
  const hidden = new Float64Array(rows.length);
  for (const head of heads) {
    const one = withoutHidden(mergedHead(map, head, rows, all), rows.length, kept, map.low < 0);
    one.hidden.forEach((share, i) => { hidden[i] += share / heads.length; });
    one.weights.forEach((weight, place) => {
      if (choice.head !== "max") weights[place] += weight / heads.length;
      else if (Math.abs(weight) > Math.abs(weights[place])) weights[place] = weight;
    });
  }
  const items = (/** @type {Group[]} */ groups) => groups.map((group) => group.item);
  return { rows: items(rows), columns: items(columns), weights, hidden, signed: map.low < 0 };
}

/** The weight that row i gives to column j. @param {View} view @param {number} i @param {number} j */
function weightAt(view, i, j) {
  return view.weights[i * view.columns.length + j];
}

/** An element with attributes and text; text never becomes markup. @param {string} name @param {Record<string, string>} attributes @param {string} [text] */
function makeElement(name, attributes, text) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
