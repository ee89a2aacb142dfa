/* Runs: the logs of trainings as curves that grow while they train; two runs can be compared. */

import { ask } from "../api.js";
import { LineChart } from "../line_chart.js";
import { codeParts, make, makeCheck, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";
import { fullNumber } from "../axis_ticks.js";

export const name = "runs";

/** @param {any[]} models @param {any} server */
export const needs = (models, server) => Boolean(server?.runs);

const EVERY_MS = 2000;
const LIST_EVERY_MS = 10_000;
const QUIET_SECONDS = 600; // a log that has not grown for so long is no longer called live
/**
 * Figures, and the fields of a log that they draw: [kind of line, field, name of the line]. One
 * scale a figure: what is counted otherwise has its own.
 */
const CHARTS = {
  loss: [
    ["train", "loss", "train"],
    ["valid", "loss", "valid"],
  ],
  bleu: [
    ["valid", "bleu", "bleu"],
    ["valid", "chrf", "chrf"],
  ],
  rate: [["train", "learning_rate", "rate"]],
  speed: [["train", "tokens_per_second", "speed"]],
  perplexity: [["valid", "perplexity", "perplexity"]],
  accuracy: [["valid", "accuracy", "accuracy"]],
};
const TASKS = [
  "translation",
  "language_modeling",
  "masked_language",
  "bidirectional_language",
  "word_vectors",
  "classification",
  "tagging",
];
/** Measured now and then, so each measurement is marked. */
const SPARSE = ["bleu", "perplexity", "accuracy"];
const SCORES = [
  "test.bleu",
  "test.chrf",
  "test.perplexity",
  "test.accuracy",
  "perplexity",
  "training_seconds",
  "parameters",
];

/** What the list shows of a run: its scores come a while after its model. @param {any} run */
const shownOf = ({ name: run, finished, scores }) => [run, finished, scores];

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, language, update } = context;
  /** @type {Map<string, {lines: any[], offset: number, finished: boolean, quiet: number}>} */
  const logs = new Map();
  let list = [];
  let timer = 0;
  let ended = false;

  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const controls = make("div", { class: "row controls" });
  const status = make("p", { class: "quiet live", role: "status" });
  const overview = makeFigure(context, {
    name: "runs",
    title: text("runs.all"),
    caption: text("runs.all_help"),
  });
  const figures = Object.keys(CHARTS).map((key) => {
    const figure = makeFigure(context, {
      name: `run-${key}`,
      title: text(`runs.${key}`),
      caption: text(`runs.${key}_help`),
    });
    return {
      key,
      figure,
      chart: new LineChart(figure.body, {
        context,
        onRead: figure.read,
        label: text(`runs.${key}`),
      }),
    };
  });
  root.append(
    make("h1", {}, text("runs.title")),
    make("p", { class: "lead" }, text("runs.lead")),
    problem,
    controls,
    status,
    make("div", { class: "columns two" }, ...figures.map((one) => one.figure.root)),
    overview.root,
  );

  const names = () => list.map((run) => run.name);
  const first = () => (names().includes(state.run) ? state.run : names()[0]);
  const second = () =>
    names().includes(state.other) && state.other !== first() ? state.other : "";
  const chosen = () => [first(), second()].filter(Boolean);

  function drawControls() {
    const options = names().map((one) => [one, one === "." ? text("runs.here") : one]);
    controls.replaceChildren(
      makeSelect({
        label: text("runs.run"),
        value: first(),
        options,
        onChange: (run) => {
          update({ run });
          drawControls();
          look();
        },
      }),
      makeSelect({
        label: text("runs.beside"),
        value: second(),
        options: [["", text("runs.none")], ...options.filter(([key]) => key !== first())],
        onChange: (other) => {
          update({ other });
          look();
        },
      }),
      makeCheck({
        label: text("runs.by_time"),
        checked: state.axis === "time",
        onChange: (checked) => {
          update({ axis: checked ? "time" : "" });
          draw();
        },
      }),
      makeCheck({
        label: text("runs.log_scale"),
        checked: state.scale === "log",
        onChange: (checked) => {
          update({ scale: checked ? "log" : "" });
          draw();
        },
      }),
    );
  }

  /** Read what is new of the chosen runs, draw, and come back. */
  async function look() {
    clearTimeout(timer);
    const wanted = chosen();
    try {
      let changed = false;
      for (const one of wanted) changed = (await read(one)) || changed;
      if (ended || wanted.join("\n") !== chosen().join("\n")) return;
      problem.hidden = true;
      draw();
      if (changed) drawOverview();
    } catch (fault) {
      problem.textContent = `${fault.message} ${text("runs.stale")}`;
      problem.hidden = false;
    } finally {
      root.removeAttribute("aria-busy");
    }
    if (!ended && wanted.some((one) => isLive(one)))
      timer = setTimeout(document.hidden ? wait : look, EVERY_MS);
  }

  /** Nobody looks: ask again when somebody does. */
  function wait() {
    document.addEventListener(
      "visibilitychange",
      () => {
        if (!ended) look();
      },
      { once: true },
    );
  }

  const isLive = (run) => {
    const log = logs.get(run);
    return !log || (!log.finished && log.quiet < QUIET_SECONDS);
  };

  /**
   * All that a log holds beyond what is known.
   * @param {string} run
   * @returns {Promise<boolean>} whether anything was new
   */
  async function read(run) {
    const log = logs.get(run) ?? { lines: [], offset: 0, finished: false, quiet: 0 };
    let changed = false;
    for (let more = true; more && !ended;) {
      const part = await ask(
        `v1/runs/log?name=${encodeURIComponent(run)}&after=${log.offset}`,
        undefined,
        { fresh: true },
      );
      if (part.restarted) log.lines = [];
      log.lines.push(...part.lines);
      Object.assign(log, {
        offset: part.offset,
        finished: part.finished,
        quiet: part.seconds_since_change,
      });
      changed = changed || part.lines.length > 0;
      more = part.more;
    }
    logs.set(run, log);
    return changed;
  }

  function draw() {
    const runs = chosen();
    for (const { key, figure, chart } of figures) {
      const across = state.axis === "time" ? "seconds" : "step";
      const series = runs
        .flatMap((run, place) =>
          CHARTS[key].map(([kind, field, label], part) => ({
            name:
              runs.length > 1
                ? `${run} · ${text(`runs.line_${label}`)}`
                : text(`runs.line_${label}`),
            number: place + 2 * part,
            field: label,
            points: logs
              .get(run)
              .lines.filter(
                (line) =>
                  line.kind === kind && line[field] !== undefined && line[across] !== undefined,
              )
              .map((line) => [line[across], line[field]]),
          })),
        )
        .filter((one) => one.points.length);
      figure.root.hidden = !series.length;
      if (figure.root.hidden) continue;
      const fields = new Set(series.map((one) => one.field));
      const measure = fields.size === 1 ? text(`runs.line_${[...fields][0]}`) : text(`runs.${key}`);
      chart.show({
        series,
        x: { name: text(`runs.axis_${across}`) },
        y: {
          name: key === "loss" ? text("runs.loss") : measure,
          log: state.scale === "log" && !["rate", "bleu", "accuracy"].includes(key),
        },
        marks: SPARSE.includes(key),
      });
      figure.offer({
        table: () => chart.sheet(),
        svg: () => chart.toSvg(),
        data: () => series,
        request: [`v1/runs/log?name=${encodeURIComponent(runs[0])}`],
      });
    }
    const live = runs.filter(isLive);
    const last = logs.get(runs[0])?.lines.at(-1);
    status.textContent = [
      live.length
        ? text("runs.live", { list: live.join(text("shell.separator")) })
        : text("runs.ended"),
      last ? text("runs.last_step", { run: runs[0], step: last.step }) : "",
    ].join(" ");
  }

  /**
   * Tasks that this page knows have a name in its language; others are called as in the recipe.
   * @param {string | null} task
   */
  const taskOf = (task) => (TASKS.includes(task) ? text(`runs.task_${task}`) : task);

  function drawOverview() {
    const present = SCORES.filter((score) => list.some((run) => run.scores[score] !== undefined));
    const write = (value) => fullNumber(value, language);
    const columns = [
      { name: text("runs.run") },
      { name: text("runs.task") },
      { name: text("runs.state") },
      ...present.map((score) => ({
        name: text(`runs.score_${score.replace(".", "_")}`),
        number: write,
      })),
    ];
    const rows = list.map((run) => [
      run.name,
      [taskOf(run.task), run.model].filter(Boolean).join(text("runs.separator")),
      text(run.finished ? "runs.finished" : "runs.unfinished"),
      ...present.map((score) => run.scores[score] ?? null),
    ]);
    overview.body.replaceChildren(
      makeNumberTable({
        columns,
        rows,
        label: text("runs.all"),
        chosen: names().indexOf(first()),
        onRow: (place) => {
          update({ run: names()[place] });
          drawControls();
          drawOverview();
          look();
        },
      }),
    );
    overview.offer({
      table: () => ({
        columns: columns.map((column) => column.name),
        rows: rows.map((row) => row.map((cell) => cell ?? "")),
      }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => list,
      request: ["v1/runs"],
    });
  }

  /**
   * What runs there are; new ones appear while one looks, and the one that the address names is
   * shown as soon as it is there.
   */
  async function relist() {
    const before = JSON.stringify(list.map(shownOf));
    const shown = chosen().join("\n");
    try {
      list = (await ask("v1/runs", undefined, { fresh: true })).runs;
    } catch (fault) {
      problem.textContent = `${fault.message} ${text("runs.stale")}`;
      problem.hidden = false;
      root.removeAttribute("aria-busy");
      return;
    }
    if (ended || before === JSON.stringify(list.map(shownOf))) return;
    overview.root.hidden = false;
    drawControls();
    drawOverview();
    if (shown !== chosen().join("\n")) look();
  }

  root.setAttribute("aria-busy", "true");
  relist().then(() => {
    if (ended || list.length || !problem.hidden) return;
    root.removeAttribute("aria-busy");
    status.replaceChildren(...codeParts(text("runs.empty")));
    overview.root.hidden = true;
    figures.forEach((one) => {
      one.figure.root.hidden = true;
    });
  });
  const relisting = setInterval(() => {
    if (!document.hidden) relist();
  }, LIST_EVERY_MS);
  return () => {
    ended = true;
    clearTimeout(timer);
    clearInterval(relisting);
    figures.forEach((one) => one.chart.end());
  };
}
