// Requests to the console. In a report there is no server: its answers are recorded by their URL.

let recorded = null;

export function useRecorded(answers) {
  recorded = answers;
}

export function isReport() {
  return recorded !== null;
}

// Errors of a request: `messages` has one text for each, as the command line prints them.
export class RequestError extends Error {
  constructor(status, messages) {
    super(messages.join("\n"));
    this.status = status;
    this.messages = messages;
  }
}

export function getJson(path, query = {}) {
  return send(urlOf(path, query));
}

// Sends `body`, a text, such as a manifest.
export function postText(path, body, query = {}) {
  return send(urlOf(path, query), { method: "POST", body, headers: { "Content-Type": "text/plain; charset=utf-8" } });
}

// The recorded answer exists: a report cannot ask for others.
export function hasAnswer(path, query = {}) {
  return recorded === null || urlOf(path, query) in recorded;
}

function urlOf(path, query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(pairs).toString();
  return text ? `${path}?${text}` : path;
}

async function send(url, options = {}) {
  if (recorded !== null) {
    if (!(url in recorded)) throw new RequestError(0, ["not in this report"]);
    if (recorded[url].errors) throw new RequestError(422, recorded[url].errors);
    return structuredClone(recorded[url]);
  }
  return (await asked(url, options)).json();
}

async function asked(url, options) {
  let response;
  try {
    response = await fetch(url, { ...options, credentials: "omit", redirect: "error" });
  } catch {
    throw new RequestError(0, ["the console does not answer"]);
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new RequestError(response.status, answer.errors ?? [`HTTP ${response.status}`]);
}

// Calls `take(event, text)` for each server-sent event until the stream ends. Unlike EventSource, it gives the reason of a
// refusal.
export async function readEvents(signal, take) {
  const response = await asked("/api/events", { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) take(...part.match(/^event: (.*)\ndata: (.*)$/).slice(1));
    }
  } finally {
    // A fault of `take` would leave the connection open.
    reader.cancel().catch(() => {});
  }
}
