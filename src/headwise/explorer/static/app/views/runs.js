/* Runs: the logs of trainings as curves that grow while they train; two runs can be compared. */

import { ask } from "../api.js";
import { LineChart } from "../line_chart.js";
import { codeParts, make, makeCheck, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";
import { fullNumber } from "../axis_ticks.js";
import { metricGroups, scoreColumns, undeclaredTask } from "../run_metrics.js";

export const name = "runs";

/** @param {any[]} models @param {any} server */
export const needs = (models, server) => Boolean(server?.runs);

const EVERY_MS = 2000;
const LIST_EVERY_MS = 10_000;
const QUIET_SECONDS = 600; // a log that has not grown for so long is no longer called live
/**
 * The figures of every run, and the fields of a log that they draw: [kind of line, field, name of
 * the line]. The metrics of validations have figures of their own (run_metrics.js).
 */
const CHARTS = {
  loss: [
    ["train", "loss", "train"],
    ["valid", "loss", "valid"],
  ],
  rate: [["train", "learning_rate", "rate"]],
  speed: [["train", "tokens_per_second", "speed"]],
};
/** Scales with a zero that a logarithm would lose. */
const PLAIN_UNITS = ["share", "score"];

/** What the list shows of a run: its scores come a while after its model. @param {any} run */
const shownOf = ({ name: run, finished, scores }) => [run, finished, scores];

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, language, update } = context;
  /** @type {Map<string, {lines: any[], offset: number, finished: boolean, quiet: number}>} */
  const logs = new Map();
  let list = [];
  /** @type {any} What the tasks of the runs declare, by their words. */
  let tasks = {};
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
  const named = (/** @type {any} */ words) => words[language];
  /** @param {string} key @param {string} title @param {string} caption */
  const figureOf = (key, title, caption) => {
    const figure = makeFigure(context, { name: `run-${key}`, title, caption });
    const chart = new LineChart(figure.body, { context, onRead: figure.read, label: title });
    return { figure, chart };
  };
  const fixed = Object.keys(CHARTS).map((key) => ({
    key,
    ...figureOf(key, text(`runs.${key}`), text(`runs.${key}_help`)),
  }));
  const columns = make("div", { class: "columns two" }, ...fixed.map((one) => one.figure.root));
  /** Figures of metrics that were needed so far, by unit and title. @type {Map<string, any>} */
  const measured = new Map();
  root.append(
    make("h1", {}, text("runs.title")),
    make("p", { class: "lead" }, text("runs.lead")),
    problem,
    controls,
    status,
    columns,
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

  /** The figures of the metrics that the chosen runs have: made when they are first needed. */
  function metricFigures(/** @type {string[]} */ runs) {
    const taskOfRun = (/** @type {string} */ name) => list.find((run) => run.name === name)?.task;
    const declared = runs.map(
      (run) => tasks[taskOfRun(run)] ?? undeclaredTask(logs.get(run).lines),
    );
    return metricGroups(declared)
      .map(({ unit, fields }) => ({
        unit,
        fields: fields.filter(([key]) =>
          runs.some((run) => logs.get(run).lines.some((line) => line[key] !== undefined)),
        ),
      }))
      .filter(({ fields }) => fields.length)
      .map(({ unit, fields }) => {
        const titles = fields.map(([, metric]) => named(metric.title));
        const all = new Intl.ListFormat(language).format(titles);
        const title = unit === "score" ? all : all[0].toUpperCase() + all.slice(1);
        if (!measured.has(`${unit} ${title}`)) {
          const helps = new Set(fields.map(([, metric]) => metric.help && named(metric.help)));
          const made = figureOf(unit, title, [...helps].filter(Boolean).join(" "));
          columns.insertBefore(made.figure.root, fixed[1].figure.root);
          measured.set(`${unit} ${title}`, made);
        }
        const made = measured.get(`${unit} ${title}`);
        const lines = fields.map(([key, metric]) => ({
          kind: "valid",
          field: key,
          name: named(metric.title),
        }));
        return { ...made, title, lines, isSparse: true, takesLog: !PLAIN_UNITS.includes(unit) };
      });
  }

  function draw() {
    const runs = chosen();
    const shown = metricFigures(runs);
    for (const { figure } of measured.values())
      if (!shown.some((one) => one.figure === figure)) figure.root.hidden = true;
    for (const { key, figure, chart } of fixed)
      drawFigure(runs, {
        figure,
        chart,
        title: text(`runs.${key}`),
        lines: CHARTS[key].map(([kind, field, label]) => ({
          kind,
          field,
          name: text(`runs.line_${label}`),
        })),
        isSparse: false,
        takesLog: key !== "rate",
        onlyTitle: key === "loss",
      });
    for (const one of shown) drawFigure(runs, one);
    const live = runs.filter(isLive);
    const last = logs.get(runs[0])?.lines.at(-1);
    status.textContent = [
      live.length
        ? text("runs.live", { list: live.join(text("shell.separator")) })
        : text("runs.ended"),
      last ? text("runs.last_step", { run: runs[0], step: last.step }) : "",
    ].join(" ");
  }

  /** @param {string[]} runs @param {any} drawn */
  function drawFigure(runs, { figure, chart, title, lines, isSparse, takesLog, onlyTitle }) {
    const across = state.axis === "time" ? "seconds" : "step";
    const series = runs
      .flatMap((run, place) =>
        lines.map(({ kind, field, name: label }, part) => ({
          name: runs.length > 1 ? `${run} · ${label}` : label,
          number: place + 2 * part,
          label,
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
    if (figure.root.hidden) return;
    const labels = new Set(series.map((one) => one.label));
    chart.show({
      series,
      x: { name: text(`runs.axis_${across}`) },
      y: {
        name: labels.size === 1 && !onlyTitle ? [...labels][0] : title,
        log: state.scale === "log" && takesLog,
      },
      marks: isSparse, // measured now and then, so each measurement is marked
    });
    figure.offer({
      table: () => chart.sheet(),
      svg: () => chart.toSvg(),
      data: () => series,
      request: [`v1/runs/log?name=${encodeURIComponent(runs[0])}`],
    });
  }

  /** A task that is not installed here is called as in the recipe. @param {string | null} task */
  const taskOf = (task) => (tasks[task] ? named(tasks[task].title) : task);

  function drawOverview() {
    const scoreOf = (/** @type {any} */ run, /** @type {string[]} */ keys) =>
      keys.map((key) => run.scores[key]).find((score) => score !== undefined) ?? null;
    const present = scoreColumns(list, tasks, named, text).filter(({ keys }) =>
      list.some((run) => scoreOf(run, keys) !== null),
    );
    const write = (value) => fullNumber(value, language);
    const headings = [
      { name: text("runs.run") },
      { name: text("runs.task") },
      { name: text("runs.state") },
      ...present.map(({ title }) => ({ name: title, number: write })),
    ];
    const rows = list.map((run) => [
      run.name,
      [taskOf(run.task), run.model].filter(Boolean).join(text("runs.separator")),
      text(run.finished ? "runs.finished" : "runs.unfinished"),
      ...present.map(({ keys }) => scoreOf(run, keys)),
    ]);
    overview.body.replaceChildren(
      makeNumberTable({
        columns: headings,
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
        columns: headings.map((column) => column.name),
        rows: rows.map((row) => row.map((cell) => cell ?? "")),
      }),
      svg: () => numberTableSvg({ columns: headings, rows }),
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
      ({ runs: list, tasks } = await ask("v1/runs", undefined, { fresh: true }));
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
    fixed.forEach((one) => {
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
    for (const one of [...fixed, ...measured.values()]) one.chart.end();
  };
}
