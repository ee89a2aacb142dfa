/*
 * The words of a translation that a memory took part in, with the probability of each. The
 * probability of a word is the product of those of its pieces; what came from the memory is, for
 * each piece, the share λ · p_kNN of its probability.
 */

import { make } from "../dom.js";

/**
 * @typedef {{text: string, places: number[], probability: number, own: number, memory: number,
 *     changed: boolean}} Word own, memory: the two parts of the probability
 * @param {any} reply of /v1/memory @returns {Word[]}
 */
export function wordsOf({ target, places }) {
  return target.words.map((words, number) => {
    const own = places
      .map((_, place) => place)
      .filter((place) => target.word_of_piece[place] === number);
    const probability = own.reduce((product, place) => product * places[place].probability, 1);
    const shares = own.map((place) => memoryPart(places[place]));
    const share = shares.reduce((sum, one) => sum + one, 0) / Math.max(1, shares.length);
    return {
      text: words,
      places: own,
      probability,
      memory: probability * share,
      own: probability * (1 - share),
      changed: own.some((place) => places[place].changed),
    };
  });
}

/** Which share of a token's probability the memory gave. @param {any} place */
function memoryPart({ weight, memory_probability: remembered, probability }) {
  return probability > 0 ? Math.min(1, (weight * remembered) / probability) : 0;
}

/** The two parts of a bar. @param {number} own @param {number} memory shares of one */
export function partsOf(own, memory) {
  return [
    [own, "from-model"],
    [memory, "from-memory"],
  ].map(([share, kind]) => {
    const part = make("span", { class: `memory-part ${kind}` });
    part.style.width = `${(100 * Math.min(1, Math.max(0, Number(share)))).toFixed(2)}%`;
    return part;
  });
}
