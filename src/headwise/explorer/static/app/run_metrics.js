/*
 * Chooses the figures and the columns of tables in which the page shows the numbers of runs, by
 * what each task declares of its numbers (GET /v1/runs).
 */

/** Numbers of every run that stand beside its scores. */
const COSTS = ["training_seconds", "parameters"];
/**
 * The metrics of some tasks, one group for each figure: one figure holds what has one unit.
 * @param {any[]} tasks as /v1/runs declares them
 * @returns {{unit: string, fields: [string, any][]}[]}
 */
export function metricGroups(tasks) {
  /** @type {Map<string, Map<string, any>>} */
  const units = new Map();
  for (const task of tasks)
    for (const [key, metric] of Object.entries(task.metrics)) {
      if (key === "loss") continue; // it stands beside the loss of training
      const fields = units.get(metric.unit) ?? new Map();
      if (!fields.has(key)) fields.set(key, metric);
      units.set(metric.unit, fields);
    }
  return [...units].map(([unit, fields]) => ({ unit, fields: [...fields] }));
}

/**
 * The columns of the table of runs: a name, and the keys of `scores` that it shows. Scores of tasks
 * that are not installed here are called by their keys.
 * @param {any[]} runs @param {any} tasks as /v1/runs gives them
 * @param {(words: any) => string} named a text of theirs in the language of the page
 * @param {(key: string, holes: any) => string} text
 */
export function scoreColumns(runs, tasks, named, text) {
  /** @type {Map<string, Set<string>>} */
  const columns = new Map();
  const add = (/** @type {string} */ title, /** @type {string[]} */ keys) => {
    columns.set(title, new Set([...(columns.get(title) ?? []), ...keys]));
  };
  for (const part of ["test", "valid"])
    for (const task of Object.values(tasks))
      for (const [key, metric] of Object.entries(task.metrics))
        add(text(`runs.of_${part}`, { metric: named(metric.title) }), [
          `${part}.${key}`,
          `${part}_${key}`,
        ]);
  for (const task of Object.values(tasks))
    for (const [key, metric] of Object.entries(task.metrics)) add(named(metric.title), [key]);
  for (const task of Object.values(tasks))
    for (const key of COSTS)
      if (task.results[key])
        add(named(task.results[key].title) + (task.results[key].unit === "time" ? " (s)" : ""), [
          key,
        ]);
  for (const run of runs.filter(({ task }) => !tasks[task]))
    for (const key of Object.keys(run.scores).filter((one) => /^(test|valid)[._]/.test(one)))
      add(key, [key]);
  return [...columns].map(([title, keys]) => ({ title, keys: [...keys] }));
}

/**
 * A task that is not installed here: what its validations have measured, by the keys of the log.
 * @param {any[]} lines
 */
export function undeclaredTask(lines) {
  const fields = new Set(
    lines.filter((line) => line.kind === "valid").flatMap((line) => Object.keys(line)),
  );
  for (const known of ["kind", "step", "epoch", "seconds"]) fields.delete(known);
  const declared = [...fields].map((key) => [key, { title: { en: key, zh: key }, unit: key }]);
  return { metrics: Object.fromEntries(declared), results: {} };
}
