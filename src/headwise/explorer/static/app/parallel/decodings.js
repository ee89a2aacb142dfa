/*
 * The decodings of a model, as the server lists them (`/v1/models`): the model's own first, each
 * with the numbers that a request may set. The page has no list of its own.
 */

/** Those that tell their passes, or what they considered. @param {any} model */
export const recorded = (model) => (model.decodings ?? []).filter((one) => one.records);

/** The one that the address names, or the first. @param {any} context @param {any} model */
export function chosenDecoding({ state }, model) {
  const all = recorded(model);
  return all.find((one) => one.kind === state.decoding) ?? all[0];
}

/** What a request says of it: its kind, and the numbers that the address holds. */
export function decodingBody(/** @type {any} */ { state }, /** @type {any} */ decoding) {
  const given = decoding.options
    .filter(({ name }) => state[name])
    .map(({ name }) => [name, Number(state[name])]);
  return { kind: decoding.kind, ...Object.fromEntries(given) };
}
