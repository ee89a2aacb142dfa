/*
 * The view "attention by numbers": small examples with a query that can be moved, and one row of a
 * loaded model.
 */

import { make, makeChoice } from "../dom.js";
import { mountAttentionRow } from "../attention_row.js";
import { openable, translators } from "../sentence_form.js";
import { mountCalculation } from "../attention_calculation.js";

export const name = "numbers";
export const needs = () => true;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, update } = context;
  const hasModel = openable(context.models).length > 0;
  const place = make("div", { class: "view-part" });
  let end = () => {};
  const show = () => {
    end();
    place.replaceChildren();
    end = (state.show === "row" && hasModel ? mountAttentionRow : mountCalculation)(place, context);
  };
  root.append(
    make("h1", {}, text("numbers.title")),
    make("p", { class: "lead" }, text("numbers.lead")),
  );
  if (hasModel) {
    root.append(
      make(
        "div",
        { class: "row controls" },
        makeChoice({
          label: text("numbers.of"),
          value: state.show === "row" ? "row" : "example",
          options: [
            ["example", text("numbers.of_example")],
            ["row", text("numbers.of_row")],
          ],
          onChange: (show_) => {
            update({ show: show_ === "row" ? "row" : "" });
            show();
          },
        }),
      ),
    );
  }
  if (!hasModel && translators(context.models).length)
    root.append(make("p", { class: "quiet" }, text("numbers.transformers_only")));
  root.append(place);
  show();
  return () => end();
}
