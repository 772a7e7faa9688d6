// Amounts for people.
import { number } from "./i18n.js";

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let index = 0;
  for (; value >= 1024 && index < units.length - 1; index += 1) value /= 1024;
  return `${number(value)} ${units[index]}`;
}

export function cores(milli) {
  return number(milli / 1000);
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400 * 2) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
