// The conversation: stored rows and notices in one list, and a tail with the live answer and what is on its way.

import { dayNumber, dayWords, el, fullTime, icon, setHTML, sourceName, timeOfDay } from "./dom.js";
import { echo } from "./keep.js";

const NEAR_END = 90; // pixels from the end at which the view still follows new text
const TALL = 560; // pixels after which what somebody typed is folded

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function stamp(seconds) {
  const iso = new Date(seconds * 1000).toISOString();
  return el("time", { datetime: iso, title: fullTime(seconds) }, timeOfDay(seconds));
}

function whence(place, source) {
  const platform = place?.platform ?? source;
  if (!platform) return null;
  const name = place?.name && place.name.toLowerCase() !== platform && platform !== "cli" ? ` · ${place.name}` : "";
  return el("span", { class: "via", "data-source": platform }, el("i"), `${sourceName(platform)}${name}`);
}

function fileSize(size) {
  if (size < 1000) return `${size} bytes`;
  return size < 1e6 ? `${Math.round(size / 1000)} KB` : `${(size / 1e6).toFixed(1)} MB`;
}

/** What came with a message: links that save, or only the name of what was not fetched. */
function files(list) {
  const entries = list.map((file) => {
    const size = file.size === null ? null : el("span", {}, fileSize(file.size));
    if (!file.url) return el("li", { class: "missing" }, el("span", { dir: "auto" }, file.name), "not fetched");
    return el("li", {}, el("a", { href: file.url, download: file.name, dir: "auto" }, file.name), size);
  });
  return el("ul", { class: "files", "aria-label": "Files" }, ...entries);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Code blocks get their language and a copy button. */
function dress(body) {
  for (const block of body.querySelectorAll("pre")) {
    const language = block.querySelector("code")?.className.replace("language-", "") ?? "";
    const copy = el("button", { type: "button", class: "copy" }, "Copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.textContent);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Select it, then copy";
        getSelection().selectAllChildren(block);
      }
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    });
    const frame = el("div", { class: "code" }, el("div", { class: "code-bar" }, el("span", {}, language), copy));
    block.replaceWith(frame);
    frame.append(block);
    block.tabIndex = 0;
  }
  return body;
}

/** Builds entries one after another into a list; knows what came before. */
class Builder {
  constructor(list, source) {
    this.list = list;
    this.source = source;
    this.day = -Infinity;
    this.last = null; // {element, role, turn, fold}
    this.calls = new Map(); // call id -> element for the result
  }

  newDay(seconds) {
    const day = dayNumber(seconds);
    if (day <= this.day) return; // clocks step back; the order of the rows does not
    this.day = day;
    this.list.append(el("li", { class: "day" }, el("span", {}, dayWords(seconds))));
  }

  entry(role, item, ...head) {
    this.newDay(item.time);
    const element = el(
      "li",
      { class: `entry ${role}`, "data-id": item.id, "data-source": item.place?.platform ?? this.source },
      el("span", { class: "node", "aria-hidden": "true" }),
      el("div", { class: "head" }, ...head, stamp(item.time)),
    );
    this.list.append(element);
    this.last = { element, role, turn: item.turn ?? null, fold: null };
    return element;
  }

  add(item) {
    if (item.number !== undefined) return this.notice(item);
    if (item.role === "user") return this.user(item);
    if (item.role === "tool") return this.result(item.result);
    return this.assistant(item);
  }

  user(row) {
    const element = this.entry("user", row, el("b", {}, row.who ?? "You"), whence(row.place, this.source));
    const body = setHTML(el("div", { class: "body plain", dir: "auto" }), row.html);
    element.append(body);
    if (row.files) element.append(files(row.files));
    if (row.edited) element.querySelector(".head").append(el("span", { class: "mark-word" }, "edited"));
    return element;
  }

  assistant(row) {
    const goesOn = this.last?.role === "assistant" && this.last.turn === (row.turn ?? null);
    const element = goesOn ? this.last.element : this.entry("assistant", row, el("b", {}, "Threadline"));
    if (goesOn && row.id) element.dataset.id = row.id;
    if (row.html) {
      element.append(dress(setHTML(el("div", { class: "body md", dir: "auto" }), row.html)));
      this.last.fold = null;
    }
    if (row.tools) this.fold(element, row.tools);
    if (row.end) element.append(el("p", { class: `end ${row.end}` }, row.end === "stopped" ? "Stopped" : "Not answered"));
    return element;
  }

  fold(element, tools) {
    if (!this.last.fold) {
      const words = el("span");
      const details = el("details", { class: "fold" }, el("summary", {}, icon("chevron"), words));
      element.append(details);
      this.last.fold = { details, words, count: 0, names: new Set() };
    }
    const fold = this.last.fold;
    fold.count += tools.count;
    for (const call of tools.calls) {
      fold.names.add(call.name);
      const result = el("pre", { class: "waiting", tabindex: "0" }, "no result yet");
      if (call.id) this.calls.set(call.id, result);
      fold.details.append(
        el("div", { class: "call" }, el("h3", {}, call.name), el("pre", { tabindex: "0" }, pretty(call.arguments)), result),
      );
    }
    fold.words.textContent = `${plural(fold.count, "tool call")}: ${[...fold.names].join(", ")}`;
  }

  result(result) {
    const slot = this.calls.get(result.call_id);
    if (!slot) return null; // its call is on an earlier page
    slot.textContent = pretty(result.text);
    slot.classList.remove("waiting");
    return null;
  }

  notice(notice) {
    const typed = notice.reply_to ? echo.get(notice.reply_to) : null;
    const element = this.entry("notice", notice, el("b", {}, typed ?? "Note"));
    element.append(dress(setHTML(el("div", { class: "body md", dir: "auto" }), notice.html)));
    return element;
  }
}

/** Rows by id, notices where their time puts them. */
function inOrder(rows, notices) {
  const items = [...rows];
  for (const notice of notices) {
    let at = items.length;
    while (at > 0 && (items[at - 1].time ?? 0) > notice.time) at -= 1;
    items.splice(at, 0, notice);
  }
  return items;
}

export class Thread {
  /** actions: again(client), edit(client), discard(client). */
  constructor({ list, tail, scroller, jump, actions }) {
    Object.assign(this, { list, tail, scroller, jump, actions });
    this.follow = true;
    this.clear(null);
    scroller.addEventListener("scroll", () => this.watch(), { passive: true });
    new ResizeObserver(() => this.settle()).observe(list.parentElement);
    new ResizeObserver(() => this.settle()).observe(scroller);
    jump.addEventListener("click", () => this.toEnd());
  }

  clear(source) {
    this.rows = [];
    this.notices = [];
    this.waiting = [];
    this.live = null;
    this.running = false;
    this.online = true;
    this.source = source;
    this.follow = true;
    this.jump.hidden = true;
    this.render();
  }

  get empty() {
    return this.rows.length === 0 && this.notices.length === 0 && this.waiting.length === 0;
  }

  get firstId() {
    return this.rows[0]?.id ?? null;
  }

  get opening() {
    return this.list.querySelector(".entry.user .body")?.textContent.trim().slice(0, 80) ?? "";
  }

  load(rows, notices, source) {
    this.source = source;
    this.rows = rows;
    this.notices = notices;
    this.follow = true;
    this.render();
    this.settle();
  }

  prepend(rows) {
    const before = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.rows = [...rows, ...this.rows];
    this.follow = false;
    this.render();
    this.scroller.scrollTop = this.scroller.scrollHeight - before;
  }

  /** Build everything anew, without the screen reader reading it all. */
  render() {
    this.list.setAttribute("aria-live", "off");
    const fragment = document.createDocumentFragment();
    this.builder = new Builder(fragment, this.source);
    for (const item of inOrder(this.rows, this.notices)) this.builder.add(item);
    this.list.replaceChildren(fragment);
    this.builder.list = this.list;
    for (const body of this.list.querySelectorAll(".user .body")) this.shorten(body);
    this.renderTail();
    requestAnimationFrame(() => this.list.setAttribute("aria-live", "polite"));
  }

  add(row) {
    if (this.rows.some((known) => known.id === row.id)) return;
    this.rows.push(row);
    if (row.role === "assistant" && this.live?.turn === row.turn) this.live = null;
    const element = this.builder.add(row);
    if (row.role === "user" && element) this.shorten(element.querySelector(".body"));
    this.renderTail();
  }

  notice(notice) {
    if (this.notices.some((known) => known.number === notice.number)) return undefined;
    const others = this.notices.filter((known) => !notice.reply_to || known.reply_to !== notice.reply_to);
    const replaces = others.length < this.notices.length;
    this.notices = [...others, notice];
    if (replaces) return this.render();
    this.builder.add(notice);
    return this.renderTail();
  }

  setTurn(running) {
    this.running = running;
    this.renderTail();
  }

  setLive(live) {
    this.live = live.turn === null ? null : live;
    this.renderTail();
  }

  setWaiting(items, online) {
    this.waiting = items;
    this.online = online;
    this.renderTail();
  }

  renderTail() {
    const entries = [];
    if (this.running) entries.push(this.liveEntry());
    for (const item of this.waiting) entries.push(this.waitingEntry(item));
    this.tail.replaceChildren(...entries);
    for (const body of this.tail.querySelectorAll(".user .body")) this.shorten(body);
    this.settle();
  }

  liveEntry() {
    const last = this.builder.last;
    const goesOn = last?.role === "assistant" && this.live !== null && last.turn === this.live.turn;
    const body = this.live?.html
      ? dress(setHTML(el("div", { class: "body md", dir: "auto" }), this.live.html))
      : el("p", { class: "thinking" }, el("i"), el("i"), el("i"), el("span", { class: "sr" }, "Working"));
    const head = goesOn ? null : el("div", { class: "head" }, el("b", {}, "Threadline"));
    return el(
      "li",
      { class: `entry assistant live${goesOn ? " goes-on" : ""}`, "aria-busy": "true" },
      el("span", { class: "node", "aria-hidden": "true" }),
      head,
      body,
    );
  }

  waitingEntry(item) {
    const failed = item.state === "failed";
    let words = "kept";
    if (item.state === "sending") words = item.problem ?? (this.online ? "sending" : "waiting for the connection");
    else if (item.state === "kept" && this.running) words = "kept, next in line";
    if (failed) words = "not sent";
    const button = (label, action) => el("button", { type: "button", onclick: () => action(item.client) }, label);
    return el(
      "li",
      { class: `entry user waiting ${item.state}`, "data-client": item.client, "data-source": "web" },
      el("span", { class: "node", "aria-hidden": "true" }),
      el("div", { class: "head" }, el("b", {}, "You"), el("span", { class: "state" }, words)),
      el("div", { class: "body plain", dir: "auto" }, item.text),
      failed &&
        el(
          "div",
          { class: "failure", role: "alert" },
          el("p", {}, item.problem),
          button("Try again", this.actions.again),
          button("Edit", this.actions.edit),
          button("Discard", this.actions.discard),
        ),
    );
  }

  shorten(body) {
    if (body.scrollHeight <= TALL || body.classList.contains("short")) return;
    body.classList.add("short");
    const button = el("button", { type: "button", class: "unfold" }, "Show all");
    button.addEventListener("click", () => {
      body.classList.remove("short");
      button.remove();
    });
    body.after(button);
  }

  watch() {
    const left = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
    this.follow = left < NEAR_END;
    this.jump.hidden = this.follow;
  }

  settle() {
    if (this.follow) this.scroller.scrollTop = this.scroller.scrollHeight;
    else this.watch();
  }

  toEnd() {
    this.follow = true;
    this.jump.hidden = true;
    this.settle();
  }

  /** Show one message and mark it for a moment; false when it is not loaded. */
  reveal(id) {
    const index = this.rows.findIndex((row) => row.id === id);
    if (index < 0) return false;
    // A tool row has no entry of its own: take the nearest one before it, with its fold open.
    for (let at = index; at >= 0; at -= 1) {
      const entry = this.list.querySelector(`[data-id="${this.rows[at].id}"]`);
      if (!entry) continue;
      if (at !== index) entry.querySelector("details")?.setAttribute("open", "");
      this.follow = false;
      entry.scrollIntoView({ block: "center" });
      entry.classList.add("found");
      setTimeout(() => entry.classList.remove("found"), 2500);
      return true;
    }
    return true;
  }
}
