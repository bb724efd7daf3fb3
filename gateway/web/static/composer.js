// The message box: grows with the text, keeps the draft, offers the commands after "/".

import { debounce, el } from "./dom.js";
import { draft } from "./keep.js";

const MAX_TEXT = 100_000;
const NEAR_LIMIT = 90_000;

// The server counts characters (code points); JavaScript's length counts UTF-16 units.
const lengthOf = (text) => (text.length <= NEAR_LIMIT ? text.length : [...text].length);

export class Composer {
  /** onSend(text): take the text over. */
  constructor({ form, text, send, hints, count, onSend }) {
    Object.assign(this, { form, text, send, hints, count, onSend });
    this.session = null;
    this.commands = [];
    this.offered = [];
    this.at = -1;
    this.keep = debounce(150, () => this.save());
    text.addEventListener("input", () => this.changed());
    text.addEventListener("keydown", (event) => this.key(event));
    text.addEventListener("blur", () => this.offer([]));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    globalThis.addEventListener("pagehide", () => this.save());
  }

  /** Show the draft of another session; what was typed stays with the one it was typed in. */
  open(session) {
    this.save();
    this.session = session;
    this.fill(draft.get(session));
  }

  /** What is typed now goes on in another session (the new one that was just begun). */
  moveTo(session) {
    draft.set(this.session, "");
    this.session = session;
    this.save();
  }

  fill(value) {
    if (this.text.value !== value) this.text.value = value;
    this.changed();
  }

  save() {
    draft.set(this.session, this.text.value);
  }

  focus() {
    this.text.focus();
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
  }

  submit() {
    const value = this.text.value.replace(/^\s*\n|\s+$/g, ""); // the first line keeps its indentation
    if (!value || this.tooLong) return;
    this.fill("");
    this.save();
    this.onSend(value);
  }

  changed() {
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight}px`;
    const length = lengthOf(this.text.value);
    this.tooLong = length > MAX_TEXT;
    this.send.disabled = !this.text.value.trim() || this.tooLong;
    this.count.textContent =
      length > NEAR_LIMIT ? `${length.toLocaleString("en")} of ${MAX_TEXT.toLocaleString("en")} characters` : "";
    this.count.classList.toggle("problem", this.tooLong);
    this.keep();
    const typed = /^\/([a-z_]*)$/i.exec(this.text.value);
    this.offer(typed ? this.commands.filter(({ name }) => name.startsWith(typed[1].toLowerCase())) : []);
  }

  offer(commands) {
    this.offered = commands;
    this.at = commands.length ? 0 : -1;
    this.hints.hidden = commands.length === 0;
    this.text.setAttribute("aria-expanded", String(commands.length > 0));
    this.hints.replaceChildren(
      ...commands.map((command, index) =>
        el(
          "li",
          { role: "option", id: `hint-${index}`, onmousedown: (event) => this.pick(event, index), onmousemove: () => this.mark(index) },
          el("code", {}, command.usage),
          el("span", {}, command.summary),
        ),
      ),
    );
    this.mark();
  }

  mark(at = this.at) {
    this.at = at;
    [...this.hints.children].forEach((option, index) => {
      option.setAttribute("aria-selected", String(index === this.at));
      if (index === this.at) option.scrollIntoView({ block: "nearest" });
    });
    if (this.at < 0) this.text.removeAttribute("aria-activedescendant");
    else this.text.setAttribute("aria-activedescendant", `hint-${this.at}`);
  }

  pick(event, index) {
    event.preventDefault(); // the focus stays in the box
    this.complete(index);
  }

  complete(index) {
    const { name, usage } = this.offered[index];
    this.fill(usage.includes(" ") ? `/${name} ` : `/${name}`);
    this.offer([]);
    this.focus();
  }

  key(event) {
    if (event.isComposing) return;
    const open = this.offered.length > 0;
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const step = event.key === "ArrowDown" ? 1 : this.offered.length - 1;
      this.at = (this.at + step) % this.offered.length;
      this.mark();
      event.preventDefault();
    } else if (open && event.key === "Escape") {
      this.offer([]);
      event.stopPropagation();
    } else if (open && event.key === "Tab" && !event.shiftKey) {
      this.complete(this.at);
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (open && this.text.value !== `/${this.offered[this.at].name}`) this.complete(this.at);
      else this.submit();
    }
  }
}
