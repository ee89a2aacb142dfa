/*
 * The frame of the page: which view is shown, for which model, in which language and theme.
 *
 * The address holds the state: `#/view?key=value&…`. A view stores there, with `context.update`,
 * whatever a link to it must show again. Adding a view takes one module `views/NAME.js` that
 * exports {name, needs, mount}, one line in VIEWS, and one object NAME in each of en.json and
 * zh.json (with `title`, shown in the menu).
 *
 *     needs(models, server) → whether there is anything to show with these models
 *     mount(root, context) → a function that ends the view (or nothing)
 */

import { ask, useKey, wantsKey, whenRefused } from "./api.js";
import { make, makeSelect } from "./dom.js";
import { currentLanguage, number, percent, preferredLanguage, text, useLanguage } from "./i18n.js";
import { chosenTheme, useTheme } from "./theme.js";
import * as align from "./views/align.js";
import * as begin from "./views/begin.js";
import * as exposure from "./views/exposure.js";
import * as heads from "./views/heads.js";
import * as language from "./views/language.js";
import * as memory from "./views/memory.js";
import * as numbers from "./views/numbers.js";
import * as parallel from "./views/parallel.js";
import * as patterns from "./views/patterns.js";
import * as positions from "./views/positions.js";
import * as runs from "./views/runs.js";
import * as steps from "./views/steps.js";
import * as tree from "./views/tree.js";
import * as vectors from "./views/vectors.js";

/** The menu, from above; each group has a heading. */
const VIEWS = [
  {
    group: "translating",
    views: [begin, align, heads, steps, tree, parallel, memory, exposure],
  },
  { group: "language", views: [language, vectors] },
  { group: "mechanics", views: [numbers, positions, patterns] },
  { group: "training", views: [runs] },
];
/** What moves along when another view is opened. */
const SHARED = ["model", "text", "prefix", "forced", "beam", "alpha", "level"];

const main = document.getElementById("main");
const menu = document.getElementById("views");
/** @type {any[]} */
let models = [];
/** @type {any} what else the server says of itself: whether there are runs to watch */
let server = {};
let unmount = () => {};
let shown = "";

/** The view and the state that the address names. */
function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: path, state: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** @param {string} name @param {Record<string, any>} state */
function address(name, state) {
  const kept = Object.entries(state).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const query = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
}

const available = () =>
  VIEWS.flatMap((part) => part.views).filter((view) => view.needs(models, server));

/** Everything a view is given. @param {string} name @param {Record<string, string>} state */
function makeContext(name, state) {
  const context = {
    name,
    models,
    server,
    state,
    text,
    number,
    percent,
    language: currentLanguage(),
    announce,
    /**
     * Put something into the address without leaving the view.
     * @param {Record<string, any>} changes
     */
    update(changes) {
      // As strings, like everything that is read from an address.
      for (const [key, value] of Object.entries(changes)) context.state[key] = String(value ?? "");
      const next = address(name, context.state);
      if (next !== location.hash) history.replaceState(null, "", next);
      drawMenu(name, context.state);
    },
    /** Go to another view. @param {string} other @param {Record<string, any>} [changes] */
    open(other, changes = {}) {
      location.hash = address(other, { ...shared(context.state), ...changes });
    },
    /** Ask the server which models it has, and begin again. */
    async reload() {
      await loadModels();
      show();
    },
  };
  return context;
}

/** @param {Record<string, any>} state */
function shared(state) {
  return Object.fromEntries(Object.entries(state).filter(([key]) => SHARED.includes(key)));
}

/** Say something to whoever cannot see the page. @param {string} message */
function announce(message) {
  document.getElementById("announcer").textContent = message;
}

/** @param {string} current @param {Record<string, any>} state */
function drawMenu(current, state) {
  menu.setAttribute("aria-label", text("shell.menu"));
  const groups = VIEWS.map(({ group, views }) => {
    const links = views
      .filter((view) => view.needs(models, server))
      .map((view) =>
        make(
          "li",
          {},
          make(
            "a",
            {
              href: address(view.name, shared(state)),
              "aria-current": view.name === current ? "page" : null,
            },
            text(`${view.name}.menu`),
          ),
        ),
      );
    if (!links.length) return null;
    return make(
      "div",
      { class: "group" },
      make("h2", {}, text(`shell.group_${group}`)),
      make("ul", {}, ...links),
    );
  });
  // On a narrow page the menu is a line to be pushed: to where it was, or to the view that is new.
  const before = menu.scrollLeft;
  menu.replaceChildren(...groups.filter((group) => group !== null));
  const link = /** @type {HTMLElement | null} */ (menu.querySelector("[aria-current]"));
  menu.scrollLeft =
    link && current !== shown
      ? link.offsetLeft - (menu.clientWidth - link.offsetWidth) / 2
      : before;
}

function drawSwitches() {
  const language = makeSelect({
    label: text("shell.language"),
    options: [
      ["en", "English"],
      ["zh", "中文"],
    ],
    value: currentLanguage(),
    onChange: async (value) => {
      await useLanguage(value);
      drawSwitches();
      show();
    },
  });
  const theme = makeSelect({
    label: text("shell.theme"),
    options: [
      ["auto", text("shell.theme_auto")],
      ["light", text("shell.theme_light")],
      ["dark", text("shell.theme_dark")],
    ],
    value: chosenTheme(),
    onChange: useTheme,
  });
  document.getElementById("switches").replaceChildren(language, theme);
}

/** Show what the address names. */
function show() {
  const { name, state } = readAddress();
  const views = available();
  const view = views.find((one) => one.name === name) ?? views[0];
  unmount();
  drawMenu(view.name, state);
  document.title = `${text(`${view.name}.title`)} · Headwise`;
  const root = make("div", { class: "view" });
  main.replaceChildren(root);
  try {
    unmount = view.mount(root, makeContext(view.name, state)) ?? (() => {});
  } catch (problem) {
    root.append(make("p", { class: "problem", role: "alert" }, String(problem)));
    throw problem;
  }
  if (shown && shown !== view.name) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  shown = view.name;
}

async function loadModels() {
  const reply = await ask("v1/models", undefined, { fresh: true });
  models = reply.models;
  server = reply;
}

/**
 * A server that wants a key, or none at all: say so and let the user try again.
 * @param {any} problem
 */
function explainStart(problem) {
  const box = make("div", { class: "card" }, make("p", { role: "alert" }, problem.message));
  if (wantsKey(problem)) {
    const field = make("input", { type: "password", autocomplete: "off", required: true });
    const form = make(
      "form",
      { class: "row" },
      make("label", { class: "field" }, make("span", {}, text("shell.key")), field),
      make("button", { class: "main" }, text("shell.use_key")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      useKey(field.value);
      start();
    });
    box.append(form);
  } else {
    box.append(
      make(
        "button",
        { class: "main", type: "button", onclick: () => start() },
        text("shell.again"),
      ),
    );
  }
  unmount();
  unmount = () => {};
  main.replaceChildren(box);
}

async function start() {
  try {
    await loadModels();
  } catch (problem) {
    if (!wantsKey(problem)) explainStart(problem); // that is explained wherever it happens
    return;
  }
  show();
}

await useLanguage(preferredLanguage());
drawSwitches();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", show);
whenRefused(explainStart);
await start();
