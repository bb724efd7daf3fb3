// Sending what was typed: one message after another, each until the gateway has it, with the same client id every time.

import { Refused, ask } from "./net.js";
import { echo, freshId, pending } from "./keep.js";

const DELAYS = [800, 1600, 3200, 6400, 12_000];

/** onChange(item): its state changed. onAccepted(item, session): the gateway has it. onToken(): the token is missing. */
export class Sender {
  constructor({ onChange, onAccepted, onToken }) {
    this.onChange = onChange;
    this.onAccepted = onAccepted;
    this.onToken = onToken;
    this.busy = false;
    this.wake = () => {};
  }

  /** Take a text over; it is safe in this browser when this returns. */
  add(text, { session, group, fresh }) {
    const item = { client: freshId(), session, group, fresh, text, at: Date.now(), state: "sending", problem: null };
    pending.put(item);
    if (text.startsWith("/")) echo.put(item.client, text);
    this.onChange(item);
    this.pump();
    return item;
  }

  again(client) {
    const item = pending.get(client);
    if (!item) return;
    this.update(item, { state: "sending", problem: null });
    this.pump();
  }

  discard(client) {
    pending.drop(client);
  }

  /** Try now instead of after the delay. */
  retry() {
    this.wake();
    this.pump();
  }

  update(item, change) {
    Object.assign(item, change);
    pending.put(item);
    this.onChange(item);
  }

  async pump() {
    if (this.busy) return;
    this.busy = true;
    try {
      for (let failures = 0; ; ) {
        const item = pending.all().find((each) => each.state === "sending");
        if (!item) return;
        if (await this.post(item)) {
          failures = 0;
          continue;
        }
        const delay = DELAYS[Math.min(failures, DELAYS.length - 1)];
        failures += 1;
        await new Promise((resolve) => {
          this.wake = resolve;
          setTimeout(resolve, delay);
        });
        this.wake = () => {};
      }
    } finally {
      this.busy = false;
    }
  }

  /** Post one item; false when it must be tried again later. */
  async post(item) {
    const body = { session_id: item.session, text: item.text, client_id: item.client };
    try {
      const { session_id: session } = await ask("/api/messages", { method: "POST", body });
      if (item.session === null) this.adopt(item.group, session, item.client);
      if (pending.get(item.client)) this.update(item, { state: "kept", session, problem: null });
      this.onAccepted(item, session);
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.passing) {
        this.update(item, { problem: error.status === 0 ? null : error.message });
        return false;
      }
      if (error.status === 404 && item.fresh) {
        // The session was only ever announced (a command in it, then a restart): begin it anew.
        this.update(item, { session: null, fresh: false });
        return true;
      }
      this.update(item, { state: "failed", problem: error.message });
      if (error.status === 401) this.onToken();
      return true;
    }
  }

  /** Messages typed while the first one of a new session was on its way belong to the same session. */
  adopt(group, session, client) {
    for (const other of pending.all()) {
      if (other.group === group && other.session === null && other.client !== client) {
        this.update(other, { session });
      }
    }
  }
}
