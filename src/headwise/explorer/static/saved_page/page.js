/*
 * The saved page: one HTML file that shows the attention of one or more translations without a
 * server. This file holds what is chosen, the two languages and the two themes, and redraws what a
 * change concerns.
 *
 * The choice is kept in the address after "#", so that a link shows the same view to whoever opens
 * it. Layers and heads count from 0 in the address and from 1 where people read them.
 *
 * explorer/pictures/html_page.py puts this file, head_grid and what the page shares with the live
 * one (app/trace, app/dom, app/attention_links, app/colour_scales, app/heat_map) after each other
 * into a single module script and leaves out the lines that load modules. The files use each
 * other's functions, and nothing outside the script sees them.
 *
 * @typedef {{title: string, source_text: string, target_text: string, source: Side, target: Side,
 *            target_input: Side, maps: PackedMap[]}} Trace
 */

/** The JSON of a data block that Python wrote into the page. @param {string} id */
function readBlock(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** @type {{title: string, traces: Trace[]}} */
const page = readBlock("page_data");
/** @type {Record<string, Record<string, string>>} */
const texts = readBlock("page_texts");
const byId = (id) => document.getElementById(id);
const systemDark = matchMedia("(prefers-color-scheme: dark)");

/**
 * A value the browser remembers, where it does: pages from a disk may not be allowed to.
 * @param {string} name
 */
function remembered(name) {
  try {
    return localStorage.getItem(`headwise.${name}`);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string} value */
function remember(name, value) {
  try {
    localStorage.setItem(`headwise.${name}`, value);
  } catch {
    /* then the choice lasts as long as the page */
  }
}

/** What is chosen: from the address, else what shows most at first sight. */
function firstChoice() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const asked = new URLSearchParams(location.search).get("lang");
  const language =
    [asked, remembered("language"), navigator.language.slice(0, 2)].find((name) => name in texts) ||
    "en";
  const theme = ["light", "dark"].includes(remembered("theme")) ? remembered("theme") : "auto";
  return {
    trace: Number(wanted.get("trace")) || 0,
    kind: wanted.get("kind") || "cross",
    layer: wanted.has("layer") ? Number(wanted.get("layer")) : -1,
    head: wanted.get("head") || "mean",
    level: wanted.get("level") === "piece" ? "piece" : "word",
    hideMarks: wanted.get("marks") === "hidden",
    language,
    theme,
  };
}

const choice = firstChoice();

/**
 * A text in the chosen language, with its {places} filled.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
function say(key, values = {}) {
  return texts[choice.language][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** A weight in the writing of the chosen language. @param {number} value */
function formatWeight(value) {
  return new Intl.NumberFormat(choice.language, {
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  }).format(value);
}

const trace = () => page.traces[choice.trace];
const currentMap = () => mapsOf(trace(), choice.kind).find((map) => map.layer === choice.layer);
/** @type {Table} what the link view, the heat map and the table show */
let view;

const linkPicture = new LinkPicture(byId("link_area"), {
  format: formatWeight,
  onChoice: readWord,
});
const heatMap = new HeatMap(byId("heat_area"), {
  label: say("heat_label"),
  onCell: readCell,
  format: formatWeight,
});

/** Say what a word attends to, or which words attend to it. @param {Word | null} chosen */
function readWord(chosen) {
  const line = byId("link_reading");
  if (chosen === null) {
    line.textContent = "";
    return;
  }
  const { side, place } = chosen;
  const others = side === "query" ? view.columns : view.rows;
  const found = others
    .map((item, other) => ({
      word: item.text,
      value: side === "query" ? weightAt(view, place, other) : weightAt(view, other, place),
    }))
    .filter((entry) => Math.abs(entry.value) >= SMALLEST_LINK)
    .sort((one, other) => Math.abs(other.value) - Math.abs(one.value))
    .slice(0, 5)
    .map((entry) => say("reading_item", { word: entry.word, value: formatWeight(entry.value) }));
  const list = found.length
    ? found.join(say("list_separator"))
    : say("reading_nothing", { value: formatWeight(SMALLEST_LINK) });
  const word = (side === "query" ? view.rows : view.columns)[place].text;
  const hidden =
    side === "query" && choice.hideMarks
      ? " " + say("reading_hidden", { value: formatWeight(view.hidden[place]) })
      : "";
  line.textContent =
    say(side === "query" ? "reading_query" : "reading_key", { word, list }) + hidden;
}

/** @param {number} row @param {number} column @param {number} value */
function readCell(row, column, value) {
  byId("heat_reading").textContent = say("heat_cell", {
    row: view.rows[row].text,
    column: view.columns[column].text,
    value: formatWeight(value),
  });
}

/**
 * Fill a select and keep the choice valid.
 * @param {string} id
 * @param {[string, string][]} options values and texts
 * @param {string} value
 * @returns {string} the value chosen
 */
function fillSelect(id, options, value) {
  const select = /** @type {HTMLSelectElement} */ (byId(id));
  select.replaceChildren(...options.map(([name, text]) => make("option", { value: name }, text)));
  select.value = options.some(([name]) => name === value) ? value : options[options.length - 1][0];
  return select.value;
}

/** Offer what the chosen sentence has. */
function fillControls() {
  choice.trace = Number(
    fillSelect(
      "trace",
      page.traces.map((item, place) => [String(place), item.title || item.source_text]),
      String(choice.trace),
    ),
  );
  const kinds = KINDS.filter((kind) => mapsOf(trace(), kind).length);
  choice.kind = fillSelect(
    "kind",
    kinds.map((kind) => [kind, say(kind)]),
    choice.kind,
  );
  const layers = mapsOf(trace(), choice.kind).map((map) => map.layer);
  choice.layer = Number(
    fillSelect(
      "layer",
      layers.map((layer) => [String(layer), String(layer + 1)]),
      String(choice.layer),
    ),
  );
  const heads = Array.from({ length: currentMap().shape[0] }, (_, head) => [
    String(head),
    String(head + 1),
  ]);
  choice.head = fillSelect(
    "head",
    [...heads, ["max", say("max")], ["mean", say("mean")]],
    choice.head,
  );
  byId("level").value = choice.level;
  byId("hide_marks").checked = choice.hideMarks;
  byId("language").value = choice.language;
  byId("theme").value = choice.theme;
}

/** The table is built when it is opened: it may be large. */
function showTable() {
  if (!byId("numbers").open) {
    byId("table_area").replaceChildren();
    return;
  }
  const table = make("table", {});
  const names = make("tr", {});
  names.append(make("th", { scope: "col" }, say("table_corner")));
  for (const item of view.columns)
    names.append(make("th", { scope: "col", lang: item.language }, item.text));
  table.append(names);
  view.rows.forEach((item, i) => {
    const row = make("tr", {});
    row.append(make("th", { scope: "row", lang: item.language }, item.text));
    view.columns.forEach((_, j) => row.append(make("td", {}, formatWeight(weightAt(view, i, j)))));
    table.append(row);
  });
  byId("table_area").replaceChildren(table);
}

/** Theme and language, then everything that is drawn. */
function render() {
  const dark = choice.theme === "dark" || (choice.theme === "auto" && systemDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.lang = choice.language;
  for (const element of document.querySelectorAll("[data-text]"))
    element.textContent = say(element.dataset.text);
  heatMap.frame.setAttribute("aria-label", say("heat_label"));
  fillControls();
  for (const side of ["source", "target"]) {
    byId(`${side}_text`).textContent = trace()[`${side}_text`];
    byId(`${side}_text`).lang = trace()[side].language;
  }
  view = makeTable(trace(), [currentMap()], choice);
  byId("signed_note").hidden = !view.signed;
  linkPicture.show(view, {
    key: say(choice.kind === "decoder_self" ? "looked_at_target" : "looked_at_source"),
    query: say(choice.kind === "encoder_self" ? "looking_source" : "looking_target"),
  });
  readWord(null);
  byId("heat_reading").textContent = "";
  heatMap.show(
    { rows: view.rows, columns: view.columns, values: view.weights },
    { kind: view.signed ? "diverging" : "sequence" },
  );
  showHeadGrid(
    byId("grid_area"),
    trace(),
    choice.kind,
    choice,
    (layer, head) => change({ layer, head }),
    say,
  );
  showTable();
}

/** Choose something else and show it. @param {Partial<typeof choice>} changed */
function change(changed) {
  const gridButton =
    document.activeElement && document.activeElement.closest("#grid_area button")
      ? document.activeElement.title
      : null;
  Object.assign(choice, changed);
  render();
  const { trace: number, kind, layer, head, level, hideMarks } = choice;
  const address = new URLSearchParams({
    trace: String(number),
    kind,
    layer: String(layer),
    head,
    level,
    marks: hideMarks ? "hidden" : "shown",
  });
  history.replaceState(null, "", `#${address}`);
  // The overview was built anew: give the focus back to the button that had it.
  if (gridButton !== null)
    [...document.querySelectorAll("#grid_area button")]
      .find((button) => button.title === gridButton)
      ?.focus();
}

/** Save the links as an SVG file. */
function saveSvg() {
  const { kind, layer, head } = choice;
  const number = Number.isNaN(Number(head)) ? head : Number(head) + 1;
  const content = new XMLSerializer().serializeToString(linkPicture.toSvg());
  saveFile(
    new Blob([content], { type: "image/svg+xml" }),
    `attention-${kind}-layer-${layer + 1}-head-${number}.svg`,
  );
}

for (const [id, read] of /** @type {[string, (value: string) => object][]} */ ([
  ["trace", (value) => ({ trace: Number(value) })],
  ["kind", (value) => ({ kind: value })],
  ["layer", (value) => ({ layer: Number(value) })],
  ["head", (value) => ({ head: value })],
  ["level", (value) => ({ level: value })],
  [
    "language",
    (value) => {
      remember("language", value);
      return { language: value };
    },
  ],
  [
    "theme",
    (value) => {
      remember("theme", value);
      return { theme: value };
    },
  ],
]))
  byId(id).addEventListener("change", (event) => change(read(event.target.value)));
byId("hide_marks").addEventListener("change", (event) =>
  change({ hideMarks: event.target.checked }),
);
byId("save_svg").addEventListener("click", saveSvg);
byId("numbers").addEventListener("toggle", showTable);
systemDark.addEventListener("change", render);
render();
