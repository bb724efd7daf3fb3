// What must outlive a reload: drafts, messages on their way, and the commands that were typed. In localStorage, one key
// for each thing, so that two pages never overwrite each other's; in memory where the browser offers no storage.

const PREFIX = "threadline.";
const MAX_ECHOES = 40;

class Memory {
  constructor() {
    this.map = new Map();
  }
  get length() {
    return this.map.size;
  }
  key(index) {
    return [...this.map.keys()][index];
  }
  getItem(key) {
    return this.map.get(key) ?? null;
  }
  setItem(key, value) {
    this.map.set(key, value);
  }
  removeItem(key) {
    this.map.delete(key);
  }
}

function usable() {
  try {
    localStorage.setItem(`${PREFIX}probe`, "1");
    localStorage.removeItem(`${PREFIX}probe`);
    return localStorage;
  } catch {
    return new Memory();
  }
}

const store = usable();
const overflow = new Memory(); // for what does not fit into localStorage

function put(key, value) {
  const text = JSON.stringify(value);
  try {
    store.setItem(PREFIX + key, text);
    overflow.removeItem(PREFIX + key);
  } catch {
    overflow.setItem(PREFIX + key, text);
  }
}

function get(key) {
  const text = overflow.getItem(PREFIX + key) ?? store.getItem(PREFIX + key);
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

function drop(key) {
  store.removeItem(PREFIX + key);
  overflow.removeItem(PREFIX + key);
}

function keys(kind) {
  const found = new Set();
  for (const box of [store, overflow]) {
    for (let index = 0; index < box.length; index += 1) {
      const key = box.key(index);
      if (key.startsWith(PREFIX + kind)) found.add(key.slice(PREFIX.length));
    }
  }
  return [...found];
}

const draftKey = (session) => `draft.${session ?? "new"}`;

export const draft = {
  get: (session) => get(draftKey(session)) ?? "",
  set(session, text) {
    if (text) put(draftKey(session), text);
    else drop(draftKey(session));
  },
};

/**
 * Messages on their way. An item: {client, session, group, fresh, text, at, state, problem}.
 * state: sending, kept (the gateway has it), failed. group ties messages together that begin one new session.
 */
export const pending = {
  all() {
    const items = keys("pending.").map(get).filter((item) => item?.client);
    return items.sort((a, b) => a.at - b.at);
  },
  get: (client) => get(`pending.${client}`),
  put: (item) => put(`pending.${item.client}`, item),
  drop: (client) => drop(`pending.${client}`),
};

/** The text of commands by client id, to show above their answers; the store does not keep commands. */
export const echo = {
  get: (client) => get(`echo.${client}`)?.text ?? null,
  put(client, text) {
    put(`echo.${client}`, { text, at: Date.now() });
    const old = keys("echo.").map((key) => [get(key)?.at ?? 0, key]).sort((a, b) => b[0] - a[0]);
    for (const [, key] of old.slice(MAX_ECHOES)) drop(key);
  },
};

/** A fresh id for one sending. crypto.randomUUID needs a secure context; this works on every address. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `w${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
