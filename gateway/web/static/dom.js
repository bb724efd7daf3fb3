// Small helpers for building the page: elements, the one door for HTML, times in words.

const policy = globalThis.trustedTypes?.createPolicy("threadline", { createHTML: (html) => html });

/** Put HTML that the server has sanitised into an element. The only place where HTML is parsed. */
export function setHTML(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
  return element;
}

/** Create an element: `el("p", { class: "note", onclick: f }, "text", child)`. Text is always text. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** One of the icons that index.html defines. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

export const byId = (id) => document.getElementById(id);

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const dayName = new Intl.DateTimeFormat("en", { weekday: "long", day: "numeric", month: "long" });
const dayNameYear = new Intl.DateTimeFormat("en", { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const shortDay = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const shortYear = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });

export const timeOfDay = (seconds) => clock.format(seconds * 1000);
export const fullTime = (seconds) => full.format(seconds * 1000);

/** Days since the epoch in this browser's zone. */
export function dayNumber(seconds) {
  const date = new Date(seconds * 1000);
  return Math.floor(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86400000);
}

export function dayWords(seconds) {
  const ago = dayNumber(Date.now() / 1000) - dayNumber(seconds);
  if (ago === 0) return "Today";
  if (ago === 1) return "Yesterday";
  const sameYear = new Date(seconds * 1000).getFullYear() === new Date().getFullYear();
  return (sameYear ? dayName : dayNameYear).format(seconds * 1000);
}

/** How long ago, short: "now", "5 min", "3 h", "yesterday", "12 Nov". */
export function ago(seconds) {
  const minutes = Math.floor((Date.now() / 1000 - seconds) / 60);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  const days = dayNumber(Date.now() / 1000) - dayNumber(seconds);
  if (days === 0) return `${Math.floor(minutes / 60)} h`;
  if (days === 1) return "yesterday";
  if (days < 7) return `${days} days`;
  const sameYear = new Date(seconds * 1000).getFullYear() === new Date().getFullYear();
  return (sameYear ? shortDay : shortYear).format(seconds * 1000);
}

const SOURCES = { cli: "Terminal", web: "Web", telegram: "Telegram", discord: "Discord", slack: "Slack" };
export const sourceName = (source) => SOURCES[source] ?? source;

export function debounce(wait, action) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}
