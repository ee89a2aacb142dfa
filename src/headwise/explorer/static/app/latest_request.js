/*
 * One request at a time for a view: a later request cancels an earlier one, errors are shown beside
 * the controls, and the view is `aria-busy` while it waits.
 *
 *     const asking = makeAsking(root);
 *     asking.ask(["v1/attend", body], (reply) => draw(reply));
 */

import { ask } from "./api.js";
import { make } from "./dom.js";
import { text } from "./i18n.js";

/** The address of this view with nothing in it but the model and the text. */
function plainAddress() {
  const [path, query] = location.hash.split("?");
  const given = new URLSearchParams(query ?? "");
  const kept = new URLSearchParams(
    ["model", "text"].filter((key) => given.get(key)).map((key) => [key, given.get(key)]),
  );
  return `${path}${kept.size ? `?${kept}` : ""}`;
}

/**
 * Say what went wrong. What stands behind a `.problem.instead` is hidden meanwhile (parts.css): it
 * answers an earlier question. A request whose form the server refuses comes from an address with a
 * setting that does not exist: the page makes none.
 * @param {HTMLElement} place a `.problem` @param {{message: string, code?: string}} fault
 */
export function showProblem(place, { message, code = "" }) {
  const isAddress = code === "bad_request";
  place.replaceChildren(
    ...(isAddress
      ? [
          text("shell.bad_link"),
          " ",
          make("a", { href: plainAddress() }, text("shell.plain_settings")),
        ]
      : [message]),
  );
  place.hidden = false;
}

/** @param {HTMLElement} busy what is being worked on */
export function makeAsking(busy) {
  const problem = make("p", { class: "problem instead", role: "alert", hidden: true });
  let last = new AbortController();
  let isOver = false;
  /** @param {string} message @param {string} [code] */
  const complain = (message, code) => showProblem(problem, { message, code });
  return {
    problem,
    complain,
    end: () => {
      isOver = true;
      last.abort();
    },
    /**
     * @param {[string, any?]} request
     * @param {(reply: any) => void} onReply
     * @param {{fresh?: boolean}} [options]
     */
    async ask(request, onReply, options = {}) {
      if (isOver) return;
      last.abort();
      last = new AbortController();
      const { signal } = last;
      busy.setAttribute("aria-busy", "true");
      try {
        const reply = await ask(request[0], request[1], { signal, ...options });
        if (signal.aborted) return;
        problem.hidden = true;
        onReply(reply);
      } catch (fault) {
        if (signal.aborted) return;
        complain(fault.message, fault.code);
      } finally {
        if (!signal.aborted) busy.removeAttribute("aria-busy");
      }
    },
  };
}

const RESTING_MS = 150;

/**
 * A labelled slider that tells its value. `onInput` comes with the first movement and when it
 * rests, since a server answers only so many
 * requests; `onChange` when it is let go: browsers allow only so many changes of the address.
 * @param {{label: string, min: number, max: number, step: number, value: number, format:
 *     (value: number) => string, onInput: (value: number) => void, onChange: () => void}} parts
 */
export function makeSlider({ label, min, max, step, value, format, onInput, onChange }) {
  const shown = make("output", {}, format(value));
  const input = make("input", { type: "range", min, max, step, "aria-label": label });
  input.value = String(value);
  let timer = 0;
  let moved = -Infinity;
  let isLetGo = false;
  const tell = () => {
    timer = 0;
    onInput(Number(input.value));
    if (isLetGo) onChange();
    isLetGo = false;
  };
  input.addEventListener("input", (event) => {
    shown.textContent = format(Number(input.value));
    window.clearTimeout(timer);
    timer = 0;
    if (event.timeStamp - moved > RESTING_MS) tell();
    else timer = window.setTimeout(tell, RESTING_MS);
    moved = event.timeStamp;
  });
  // A key that is held down lets go at every step.
  input.addEventListener("change", () => {
    if (timer) isLetGo = true;
    else onChange();
  });
  return make(
    "div",
    { class: "field slider" },
    make("span", { class: "slider-name" }, make("span", { "aria-hidden": "true" }, label), shown),
    input,
  );
}
