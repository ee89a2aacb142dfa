/*
 * What the files of the page share: the blocks of data Python wrote into it, and elements that hold text.
 *
 * The files app/trace, data, links, heat_map, overview and page are put one after the other into a single module script, so they
 * see each other's functions and nothing outside sees theirs. app/trace.js is the live page's own: one file or a server's reply,
 * words are put together and marks hidden in the same way.
 *
 * @typedef {{title: string, source_text: string, target_text: string, source: Side, target: Side,
 *            target_input: Side, maps: PackedMap[]}} Trace
 */

/** The JSON of a data block of the page. @param {string} id */
function readBlock(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** An element with attributes and text; text never becomes markup. @param {string} name @param {Record<string, string>} attributes @param {string} [text] */
function makeElement(name, attributes, text) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
