// Talking to the gateway: requests whose failures are sentences, and the event stream that comes back by itself.

// A foreign page cannot send this header without a preflight, which the server never answers.
const OURS = { "X-Threadline": "page" };

const SILENCE = 40_000; // the server sends a heartbeat every 15 s
const DELAYS = [300, 700, 1500, 3000, 6000, 10_000];

/** status 0: the gateway did not answer at all. message is a sentence for the person. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status >= 500;
  }
}

async function sentenceOf(response) {
  try {
    return (await response.json()).error ?? response.statusText;
  } catch {
    return `The gateway answered ${response.status}.`;
  }
}

export async function ask(path, { method = "GET", body } = {}) {
  let response;
  try {
    const headers = body === undefined ? OURS : { ...OURS, "Content-Type": "application/json" };
    const text = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(path, { method, headers, body: text, cache: "no-store" });
  } catch {
    throw new Refused(0, "The gateway does not answer.");
  }
  if (!response.ok) throw new Refused(response.status, await sentenceOf(response));
  try {
    return await response.json();
  } catch {
    throw new Refused(0, "The connection broke off.");
  }
}

/** Split a stream of server-sent events into `{kind, id, data}`. */
async function* eventsOf(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { kind: null, id: null, data: null };
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event.kind = line.slice(7);
        else if (line.startsWith("id: ")) event.id = Number(line.slice(4));
        else if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
      }
      if (event.kind) yield event;
    }
  }
}

/**
 * The event stream of one session (or of none). `follow` replaces what is followed; it reconnects until `close`.
 * onEvent(kind, data); onState("open" | "lost" | "token" | "missing" | "full").
 */
export class Stream {
  constructor({ onEvent, onState }) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.abort = null;
    this.session = null;
    this.after = 0;
    this.paused = false;
    this.nudge = () => {};
  }

  follow(session, after) {
    this.session = session;
    this.after = after;
    this.restart();
  }

  restart() {
    this.close();
    if (this.paused) return;
    this.abort = new AbortController();
    this.run(this.abort.signal);
  }

  close() {
    this.abort?.abort();
    this.abort = null;
  }

  /** Connect again now instead of after the delay; does nothing while connected. */
  retry() {
    this.nudge();
  }

  /** A page that nobody looks at gives its connection back; browsers allow only six for one server. */
  pause() {
    this.paused = true;
    this.close();
  }

  resume() {
    if (!this.paused) return;
    this.paused = false;
    this.restart();
  }

  async run(signal) {
    for (let failures = 0; !signal.aborted; failures += 1) {
      const connected = await this.connect(signal);
      if (signal.aborted || connected === "over") return;
      if (connected === "was open") failures = 0;
      const delay = DELAYS[Math.min(failures, DELAYS.length - 1)] * (0.8 + Math.random() * 0.4);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, delay);
        this.nudge = () => {
          clearTimeout(timer);
          failures = 0;
          resolve();
        };
      });
      this.nudge = () => {};
    }
  }

  async connect(signal) {
    const place = this.session === null ? "" : `&session=${encodeURIComponent(this.session)}`;
    const silence = new AbortController();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
    };
    let opened = false;
    try {
      alive();
      const response = await fetch(`/api/events?after=${this.after}${place}`, {
        headers: OURS,
        cache: "no-store",
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (response.status === 401) return this.end("token");
      if (response.status === 404) return this.end("missing");
      if (!response.ok) {
        this.onState("full", await sentenceOf(response));
        return "refused";
      }
      opened = true;
      this.onState("open");
      for await (const event of eventsOf(response.body, alive)) {
        if (signal.aborted) return "over";
        if (event.id !== null) this.after = Math.max(this.after, event.id);
        this.onEvent(event.kind, event.data);
        if (event.kind === "gone") return "over";
      }
    } catch (error) {
      if (signal.aborted) return "over";
      if (error.name !== "AbortError" && !(error instanceof TypeError)) console.error(error);
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
    if (!signal.aborted) this.onState("lost");
    return opened ? "was open" : "refused";
  }

  end(state) {
    this.onState(state);
    return "over";
  }
}
