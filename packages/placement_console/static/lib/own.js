// Texts of this project that come from the server, in the language of the page. The server and the audit log have them in
// English, as the commands print them; a sentence that is not in the table, such as the words of kube-scheduler, stays so.
// A text that no sentence fits is divided at its full stops, then at its semicolons.
import { language } from "./i18n.js";
import { SENTENCES } from "./sentences.js";

// Longer texts, which no sentence makes, could take seconds.
const MOST_CHARACTERS = 2000;
const MOST_DEPTH = 20;
const MOST_PARTS = 50;
const byLetter = new Map();
// Values of users are in quotes.
const OUTSIDE_QUOTES = '(?=[^"]*(?:"[^"]*"[^"]*)*$)';
const FULL_STOP = new RegExp(`\\. ${OUTSIDE_QUOTES}`);
const SEMICOLON = new RegExp(`; ${OUTSIDE_QUOTES}`);

export function own(text) {
  if (language() !== "zh" || text.length > MOST_CHARACTERS) return text;
  // The errors of one object, one a line.
  return text.split(";\n").map((line) => translated(line, MOST_DEPTH)).join("；\n");
}

// The sentences that begin with this letter, small or capital, or with a part: most of them begin with a word.
function sentencesFor(first = "") {
  const letter = /[a-z ]/i.test(first) ? first.toLowerCase() : "";
  if (!byLetter.has(letter)) byLetter.set(letter, SENTENCES.filter(([{ source }]) => !/^\^[a-z ]/i.test(source) || source[1].toLowerCase() === letter));
  return byLetter.get(letter);
}

function translated(text, depth) {
  if (!depth) return text;
  // After a full stop, a sentence begins with a capital letter.
  const small = /^[A-Z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : "";
  for (const [sentence, form] of sentencesFor(text[0])) {
    const parts = sentence.exec(text) ?? (small && sentence.exec(small));
    if (parts) return formed(form, parts, depth) ?? text;
  }
  return divided(text, depth);
}

// The form with its parts, or nothing if it has no words and its parts stay: then these are words of others, or names.
function formed(form, parts, depth) {
  const whole = form.replace(/\[([^\]]*\$(\d)[^\]]*)\]/g, (_, part, at) => (parts[at] ? part : ""));
  let hasWords = /[a-z\u4e00-\u9fff]/i.test(form);
  const shown = whole.replace(/\$(\d)([*+=]?)/g, (_, at, how) => {
    const part = parts[at] ?? "";
    if (how === "*") return part.split(/, (?!which )| and | or /).map((each) => (each.includes(" ") ? translated(each, depth - 1) : each)).join("、");
    const inTurn = how === "+" || (!how && part.trim().includes(" ")) ? translated(part, depth - 1) : part;
    hasWords ||= inTurn !== part;
    return inTurn;
  });
  return hasWords ? shown : null;
}

function divided(text, depth) {
  const stop = text.endsWith(".") ? "." : "";
  const sentences = text.slice(0, text.length - stop.length).split(FULL_STOP);
  const [parts, between, mark] = stop || sentences.length > 1 ? [sentences, ". ", "。"] : [text.split(SEMICOLON), "; ", "；"];
  if (parts.length > MOST_PARTS || (!stop && parts.length === 1)) return text;
  return parts.map((part, at) => {
    const shown = translated(part, depth - 1);
    const isLast = at === parts.length - 1;
    if (shown === part) return part + (isLast ? stop : between);
    return shown + (isLast && !stop ? "" : mark);
  }).join("");
}
