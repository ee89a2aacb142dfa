/*
 * Requests to the server. One function asks, errors become readable sentences, and replies are kept
 * for a while, because moving between views asks for the same again. The same request can be shown
 * as a command for a terminal and as Python.
 */

import { currentLanguage, text } from "./i18n.js";
import { recall, remember } from "./browser_storage.js";

const REMEMBERED = 12;
/** @typedef {{answer: Promise<any>, waiting: number, isOver: boolean, stop: () => void}} Asked */
/** @type {Map<string, Asked>} */
const answers = new Map();
const STORED_KEY = "headwise-key";

export class ApiError extends Error {
  /** @param {string} message @param {{status?: number, code?: string, details?: any}} [facts] */
  constructor(message, { status = 0, code = "", details = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/**
 * The key a guarded server asks for; kept until the tab is closed, or "" to forget it.
 * @param {string} key
 */
export function useKey(key) {
  remember(STORED_KEY, key, () => sessionStorage);
  answers.clear();
}

/** A server that asks for a key, or does not know the one it was given. @param {any} problem */
export const wantsKey = (problem) =>
  problem instanceof ApiError && (problem.status === 401 || problem.status === 403);

let onRefused = (/** @type {ApiError} */ problem) => {};

/** What to do when a request lacked a key that is good. @param {(problem: ApiError) => void} act */
export function whenRefused(act) {
  onRefused = act;
}

/**
 * Ask the server. Whoever asks what is being answered already waits for the same answer.
 * @param {string} path such as "v1/trace" @param {any} [body] posted as JSON; GET without one
 * @param {{signal?: AbortSignal, fresh?: boolean}} [options] signal: stop waiting; fresh: ask
 *     again though the answer is remembered
 * @returns {Promise<any>}
 */
export function ask(path, body = undefined, { signal = undefined, fresh = false } = {}) {
  const question = `${path} ${JSON.stringify(body)}`;
  const known = fresh ? undefined : answers.get(question);
  return wait(known ?? begin(question, path, body), signal);
}

/** @param {string} question @param {string} path @param {any} body @returns {Asked} */
function begin(question, path, body) {
  const controller = new AbortController();
  const forget = () => {
    if (answers.get(question) === asked) answers.delete(question);
  };
  const answer = send(path, body, controller.signal);
  /** @type {Asked} */
  const asked = {
    answer,
    waiting: 0,
    isOver: false,
    stop: () => {
      forget();
      controller.abort();
    },
  };
  answers.set(question, asked);
  answer.then(
    () => {
      asked.isOver = true;
    },
    () => {
      asked.isOver = true;
      forget();
    },
  );
  while (answers.size > REMEMBERED) answers.delete(answers.keys().next().value);
  return asked;
}

/**
 * The answer, until the asker loses interest; the request itself ends when nobody waits for it any
 * more.
 * @param {Asked} asked
 * @param {AbortSignal} [signal]
 */
function wait(asked, signal) {
  asked.waiting += 1;
  if (!signal) return asked.answer;
  return new Promise((resolve, reject) => {
    const leave = () => {
      asked.waiting -= 1;
      // Not at once: a view that leaves may make way for one that asks the same.
      setTimeout(() => {
        if (!asked.waiting && !asked.isOver) asked.stop();
      }, 0);
      reject(signal.reason);
    };
    if (signal.aborted) {
      leave();
      return;
    }
    signal.addEventListener("abort", leave, { once: true });
    asked.answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

let numAsking = 0;

/** The root of the page tells whether an answer is awaited. @param {number} change */
function count(change) {
  numAsking += change;
  document.documentElement.toggleAttribute("data-asking", numAsking > 0);
}

/** @param {string} path @param {any} body @param {AbortSignal} signal */
async function send(path, body, signal) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const key = recall(STORED_KEY, () => sessionStorage);
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  let reply;
  count(1);
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: JSON.stringify(body),
      signal,
    });
    reply = await response.json().catch((problem) => {
      if (response.ok) throw problem;
      return {};
    });
  } catch (problem) {
    if (signal.aborted) throw problem;
    throw new ApiError(text("shell.unreachable"), { code: "unreachable" });
  } finally {
    // After whoever waits for the answer has drawn it.
    setTimeout(() => count(-1), 0);
  }
  if (response.ok) return reply;
  const problem = explain(response, reply);
  if (wantsKey(problem)) {
    // Another may have been given meanwhile: that one is kept.
    if (key && key === recall(STORED_KEY, () => sessionStorage)) useKey("");
    onRefused(problem);
  }
  throw problem;
}

/** @param {Response} response @param {any} reply */
function explain({ status, headers }, reply) {
  const error = reply.error ?? {};
  // What the server says of this is said to programs.
  if (status === 429)
    return new ApiError(text("shell.too_fast", { seconds: headers.get("retry-after") ?? 60 }), {
      status,
      code: error.code ?? "",
      details: error,
    });
  const message =
    (currentLanguage() === "zh" && error.message_zh) ||
    error.message ||
    text("shell.failed", { status });
  return new ApiError(message, { status, code: error.code ?? "", details: error });
}

/**
 * The same request for a terminal and for a program; a key is named, never shown.
 * @param {string} path
 * @param {any} [body]
 */
export function describeRequest(path, body = undefined) {
  const address = new URL(path, document.baseURI).href;
  const hasKey = Boolean(recall(STORED_KEY, () => sessionStorage));
  const quote = (part) => `'${part.replaceAll("'", String.raw`'\''`)}'`;
  const json = JSON.stringify(body, null, 2);
  const curl = [
    `curl ${quote(address)}`,
    ...(hasKey ? ['-H "Authorization: Bearer $HEADWISE_KEY"'] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d ${quote(json)}`]),
  ].join(" \\\n  ");
  const headers = [
    ...(body === undefined ? [] : ['"content-type": "application/json"']),
    ...(hasKey ? ['"authorization": "Bearer " + os.environ["HEADWISE_KEY"]'] : []),
  ];
  const python = [
    "import json",
    ...(hasKey ? ["import os"] : []),
    "import urllib.request",
    "",
    ...(body === undefined ? [] : [`body = json.loads(r"""${json}""")`]),
    "request = urllib.request.Request(",
    `    ${JSON.stringify(address)},`,
    ...(body === undefined ? [] : ["    json.dumps(body).encode(),"]),
    ...(headers.length ? [`    headers={${headers.join(", ")}},`] : []),
    ")",
    "with urllib.request.urlopen(request) as reply:",
    "    answer = json.load(reply)",
    "",
  ].join("\n");
  return { curl, python };
}
