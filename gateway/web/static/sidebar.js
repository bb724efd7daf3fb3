// The list of sessions and the search over everything.

import { ago, debounce, el, setHTML, sourceName } from "./dom.js";
import { ask } from "./net.js";

export class Sidebar {
  /** onFailure(error): a request failed. onList(): the list is fresh. */
  constructor({ list, search, onFailure, onList }) {
    Object.assign(this, { list, search, onFailure, onList });
    this.sessions = [];
    this.more = false;
    this.selected = null;
    this.found = null;
    this.asked = 0;
    this.shown = 50;
    search.addEventListener("input", debounce(180, () => this.find()));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && search.value) {
        event.stopPropagation();
        this.clearSearch();
      } else if (event.key === "ArrowDown") {
        event.preventDefault();
        this.list.querySelector("a")?.focus();
      }
    });
    list.addEventListener("keydown", (event) => this.move(event));
    setInterval(() => this.render(), 60_000);
  }

  row(id) {
    return this.sessions.find((session) => session.id === id) ?? null;
  }

  select(id) {
    this.selected = id;
    this.render();
  }

  clearSearch() {
    this.search.value = "";
    this.found = null;
    this.render();
  }

  async refresh() {
    const asked = (this.asked += 1);
    try {
      const sessions = [];
      let more = true;
      while (more && sessions.length < this.shown) {
        const page = await ask(`/api/sessions?offset=${sessions.length}`);
        sessions.push(...page.sessions);
        more = page.more && page.sessions.length > 0;
      }
      if (asked !== this.asked) return;
      this.sessions = sessions;
      this.more = more;
      this.render();
      this.onList();
    } catch (error) {
      this.onFailure(error);
    }
  }

  async find() {
    const query = this.search.value.trim();
    if (!query) return this.clearSearch();
    try {
      const found = await ask(`/api/search?q=${encodeURIComponent(query)}`);
      if (query !== this.search.value.trim()) return undefined;
      this.found = found;
      this.render();
    } catch (error) {
      this.onFailure(error);
    }
    return undefined;
  }

  move(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...this.list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    if (event.key === "ArrowUp" && at === 0) this.search.focus();
    else links[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  render() {
    const focused = this.list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.list.replaceChildren(...(this.found ? this.results() : this.everything()));
    if (focused) this.list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  everything() {
    if (this.sessions.length === 0) return [el("p", { class: "nothing" }, "No sessions yet. The first message begins one.")];
    const rows = this.sessions.map((session) => this.link(session));
    if (this.more) {
      rows.push(
        el("button", { type: "button", class: "more", onclick: () => this.showMore() }, "Show older sessions"),
      );
    }
    return rows;
  }

  showMore() {
    this.shown += 50;
    this.refresh();
  }

  results() {
    const { sessions, hits, problem } = this.found;
    const parts = [];
    if (problem) parts.push(el("p", { class: "nothing problem" }, problem));
    if (sessions.length) parts.push(el("h2", {}, "Sessions"), ...sessions.map((session) => this.link(session)));
    if (hits.length) parts.push(el("h2", {}, "Messages"), ...hits.map((hit) => this.hit(hit)));
    if (!parts.length) parts.push(el("p", { class: "nothing" }, "Nothing found. Try fewer or other words."));
    return parts;
  }

  link(session) {
    const here = session.id === this.selected;
    return el(
      "a",
      { class: "session", href: `#/s/${encodeURIComponent(session.id)}`, "aria-current": here ? "page" : null },
      el("span", { class: "name", dir: "auto" }, session.title || session.preview || "Empty session"),
      el(
        "span",
        { class: "meta" },
        el("span", { class: "via", "data-source": session.source }, el("i"), sourceName(session.source)),
        el("span", { class: "when" }, ago(session.last_active)),
      ),
    );
  }

  hit(hit) {
    return el(
      "a",
      { class: "session hit", href: `#/s/${encodeURIComponent(hit.session_id)}/m/${hit.id}` },
      setHTML(el("span", { class: "snippet", dir: "auto" }), hit.html),
      el(
        "span",
        { class: "meta" },
        el("span", { class: "via", "data-source": hit.source }, el("i"), hit.title || sourceName(hit.source)),
        el("span", { class: "when" }, ago(hit.time)),
      ),
    );
  }
}
