// What surrounds the conversation: the banner, short words at the foot, the drawer of a phone, the gate without a token.

import { byId } from "./dom.js";

export function banner(sentence, retry = false) {
  byId("banner").hidden = sentence === null;
  byId("banner-words").textContent = sentence ?? "";
  byId("banner-retry").hidden = !retry;
}

let toastTimer;

export function toast(words) {
  const note = byId("toast");
  note.textContent = words;
  note.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (note.hidden = true), 5000);
}

/** Ask for the address with the token. */
export function showGate(problem = "") {
  document.body.dataset.state = "gate";
  byId("gate").hidden = false;
  byId("app").inert = true;
  byId("gate-problem").textContent = problem;
  byId("gate-token").focus();
}

export function drawer(show) {
  document.body.classList.toggle("drawer", show);
  byId("menu").setAttribute("aria-expanded", String(show));
  byId("main").inert = show;
}

export function wireShell() {
  byId("menu").addEventListener("click", () => {
    drawer(true);
    byId("search").focus();
  });
  byId("close-drawer").addEventListener("click", () => drawer(false));
  byId("backdrop").addEventListener("click", () => drawer(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") drawer(false);
  });
  byId("gate-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = byId("gate-token").value.trim();
    const token = /[?&]token=([^&#\s]+)/.exec(given)?.[1] ?? encodeURIComponent(given);
    location.assign(`/?token=${token}`);
  });
}
