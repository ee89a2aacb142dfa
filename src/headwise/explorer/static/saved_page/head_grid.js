/*
 * The grid of heads: a small picture for every layer and head of one kind of attention, each of
 * them a button. All pictures share one colour scale from 0 to 1.
 */

/**
 * Fill the area with one row of buttons for each layer.
 * @param {HTMLElement} area @param {Trace} trace @param {string} kind
 * @param {{layer: number, head: string, level: string, hideMarks: boolean}} choice
 * @param {(layer: number, head: string) => void} onChoice
 * @param {(key: string, values?: Record<string, string | number>) => string} say
 */
function showHeadGrid(area, trace, kind, choice, onChoice, say) {
  const rows = mapsOf(trace, kind).map((map) => {
    const row = make("div", { class: "grid_row" });
    row.append(make("span", {}, say("layer_number", { number: map.layer + 1 })));
    for (let head = 0; head < map.shape[0]; head += 1) {
      const chosen = map.layer === choice.layer && String(head) === choice.head;
      const layerName = say("layer_number", { number: map.layer + 1 });
      const name = `${layerName}, ${say("head_number", { number: head + 1 })}`;
      const button = make("button", {
        type: "button",
        "aria-label": name,
        title: name,
        "aria-pressed": String(chosen),
      });
      const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { "aria-hidden": "true" }));
      const small = makeTable(trace, [map], { ...choice, head: String(head) });
      // The style sheet enlarges it.
      drawPixels(canvas, small.weights, small.rows.length, small.columns.length, {
        largest: small.signed ? largestOf(small.weights) : 1,
        kind: small.signed ? "diverging" : "sequence",
      });
      button.append(canvas);
      button.addEventListener("click", () => onChoice(map.layer, String(head)));
      row.append(button);
    }
    return row;
  });
  area.replaceChildren(...rows);
}
