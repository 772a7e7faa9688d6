// Texts in English and Chinese. Each page brings a table { en: { key: text }, zh: { key: text } } with the same keys.
// "{name}" is a value; "{n|node|nodes}" is a number with the noun that agrees with it.

const tables = { en: {}, zh: {} };
let current = "en";

export function addTexts(texts) {
  for (const language of Object.keys(tables)) Object.assign(tables[language], texts[language]);
}

export function language() {
  return current;
}

export function setLanguage(chosen) {
  current = chosen in tables ? chosen : "en";
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
}

export function t(key, values = {}) {
  const text = tables[current][key] ?? tables.en[key];
  if (text === undefined) throw new Error(`no text ${key}`);
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name, one, many) => {
    const value = values[name] ?? "";
    const shown = typeof value === "number" ? number(value) : String(value);
    return one === undefined ? shown : `${shown} ${value === 1 ? one : many}`;
  });
}

export function number(value) {
  return value.toLocaleString(current === "zh" ? "zh-CN" : "en-US", { maximumFractionDigits: 1 });
}
