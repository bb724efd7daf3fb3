// The page: which session is open, what the stream says about it, and what is on its way.

import { byId, setHTML, el, sourceName } from "./dom.js";
import { Composer } from "./composer.js";
import { freshId, pending } from "./keep.js";
import { Refused, Stream, ask } from "./net.js";
import { Sender } from "./sender.js";
import { banner, drawer, showGate, toast, wireShell } from "./shell.js";
import { Sidebar } from "./sidebar.js";
import { Thread } from "./thread.js";

const HIDDEN_FOR = 60_000; // a page that nobody sees gives its connection back after this
const PATIENCE = 1200; // a shorter interruption is not worth a banner
const STALE = 30_000; // a command that the gateway took and forgot (it restarted) is dropped after this
const RECENT = 60_000;
const DAY = 86_400_000; // what is kept that long is in the store; no page has looked since
const PAGE = 60;
const MAX_LOOKS = 50; // pages to go back in search of one message

const state = {
  session: null,
  group: freshId(), // names the new session while it has no id
  head: null,
  online: true,
  opened: 0, // grows with every opening, so that late answers to earlier ones are recognised
};

const thread = new Thread({
  list: byId("thread"),
  tail: byId("tail"),
  scroller: byId("scroller"),
  jump: byId("jump"),
  actions: { again: (client) => sender.again(client), edit, discard },
});
const sidebar = new Sidebar({ list: byId("list"), search: byId("search"), onFailure: failed, onList: showHead });
const composer = new Composer({
  form: byId("composer"),
  text: byId("text"),
  send: byId("send"),
  hints: byId("hints"),
  count: byId("count"),
  onSend: send,
});
const sender = new Sender({ onChange: showWaiting, onAccepted: accepted, onToken: lockedOut });
const stream = new Stream({ onEvent: heard, onState: connection });

// --- which session is open ------------------------------------------------------------------------------------------

function address() {
  const found = /^#\/s\/([^/]+)(?:\/m\/(\d+))?$/.exec(location.hash);
  return found ? { session: decodeURIComponent(found[1]), message: Number(found[2] ?? 0) } : { session: null, message: 0 };
}

function go(session, { replace = false } = {}) {
  const hash = session === null ? "#/" : `#/s/${encodeURIComponent(session)}`;
  if (location.hash === hash) return open(session, 0);
  if (replace) {
    history.replaceState(null, "", hash);
    return open(session, 0);
  }
  location.hash = hash; // hashchange opens it
  return undefined;
}

async function open(session, message) {
  const other = session !== state.session || session === null;
  if (other) state.opened += 1;
  const opening = state.opened;
  if (other) {
    state.session = session;
    state.head = null;
    thread.clear(sidebar.row(session)?.source ?? null);
    byId("earlier").hidden = true;
    setRunning(false);
    composer.open(session);
    sidebar.select(session);
    byId("welcome").hidden = true;
    showHead();
    showWaiting();
  }
  drawer(false);
  if (session === null) {
    state.group = pending.all().findLast((item) => item.session === null)?.group ?? freshId();
    showWaiting();
    stream.follow(null, 0);
    return;
  }
  if (other && !(await load(session, opening))) return;
  if (message) await reveal(message, opening);
}

/** Read a session and follow it; false when the page went elsewhere meanwhile. */
async function load(session, opening) {
  stream.close();
  for (let delay = 400; ; delay = Math.min(delay * 2, 5000)) {
    try {
      const page = await ask(`/api/sessions/${encodeURIComponent(session)}/messages?limit=${PAGE}`);
      if (opening !== state.opened) return false;
      connection("open");
      state.head = page.session;
      for (const row of page.messages) settled(row.client_id);
      thread.load(page.messages, page.notices, page.session.source);
      page.notices.forEach(answered);
      byId("earlier").hidden = !page.more;
      dropStale();
      showHead();
      showWaiting();
      stream.follow(session, page.last ?? 0);
      return true;
    } catch (error) {
      if (opening !== state.opened) return false;
      if (!failed(error)) return false;
      if (error.status === 404 && !expected(session)) {
        toast("That session is not here any more.");
        go(null, { replace: true });
        return false;
      }
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (opening !== state.opened) return false;
    }
  }
}

const expected = (session) => pending.all().some((item) => item.session === session && item.state !== "failed");

async function earlier() {
  const { opened } = state;
  const before = thread.firstId;
  if (before === null) return false;
  try {
    const path = `/api/sessions/${encodeURIComponent(state.session)}/messages?limit=${PAGE}&before=${before}`;
    const page = await ask(path);
    if (opened !== state.opened || before !== thread.firstId) return false;
    thread.prepend(page.messages);
    byId("earlier").hidden = !page.more;
    return page.messages.length > 0;
  } catch (error) {
    failed(error);
    return false;
  }
}

async function reveal(message, opening) {
  for (let looks = 0; looks < MAX_LOOKS && opening === state.opened; looks += 1) {
    if (thread.reveal(message)) return;
    if (byId("earlier").hidden || !(await earlier())) break;
  }
  if (opening === state.opened) toast("That message is not here any more.");
}

// --- what the stream says -------------------------------------------------------------------------------------------

function heard(kind, data) {
  if (kind === "message") {
    settled(data.client_id);
    thread.add(data);
    showWaiting();
    if (document.hidden && data.role === "assistant") document.title = `● ${pageTitle()}`;
  } else if (kind === "live") thread.setLive(data);
  else if (kind === "turn") setRunning(data.running);
  else if (kind === "notice") {
    thread.notice(data);
    answered(data);
    showWaiting();
  } else if (kind === "sessions") sidebar.refresh();
  else if (kind === "retracted") load(state.session, state.opened);
  else if (kind === "trouble") banner(data.error);
  else if (kind === "gone") {
    toast("This session was deleted.");
    go(null, { replace: true });
  }
}

/** A command that was typed here has its answer; after `/new` the page goes where it leads. */
function answered(notice) {
  const typedHere = notice.reply_to !== null && pending.get(notice.reply_to) !== null;
  settled(notice.reply_to);
  if (typedHere && notice.goto && notice.goto !== state.session) {
    toast(setHTML(el("div"), notice.html).textContent.trim());
    go(notice.goto);
  }
}

function settled(client) {
  if (client) pending.drop(client);
}

function setRunning(running) {
  thread.setTurn(running);
  const stop = byId("stop");
  stop.hidden = !running;
  stop.disabled = false;
  if (running) showWelcome();
}

let lostSince = null;

function connection(now, sentence) {
  if (now === "token") return lockedOut();
  if (now === "missing") return reload();
  const online = now === "open";
  byId("link-state").dataset.state = online ? "open" : "lost";
  byId("link-words").textContent = online ? "Connected" : "Reconnecting";
  if (online) {
    clearTimeout(lostSince);
    lostSince = null;
    banner(null);
    if (!state.online) sender.retry();
    if (composer.commands.length === 0) learnCommands();
  } else if (lostSince === null) {
    lostSince = setTimeout(() => {
      banner(sentence ?? "Connection lost. What you write is kept here and sent when the gateway is back.", true);
    }, PATIENCE);
  }
  if (state.online !== online) {
    state.online = online;
    showWaiting();
  }
  return undefined;
}

/** The stream was refused because the session is not there: read it again, or leave it. */
function reload() {
  const { session } = state;
  state.session = undefined;
  return open(session, 0);
}

// --- what is on its way ---------------------------------------------------------------------------------------------

const ofThisView = (item) =>
  state.session === null ? item.session === null && item.group === state.group : item.session === state.session;

function send(text) {
  const fresh = state.session !== null && state.head !== null && state.head.started_at === null;
  sender.add(text, { session: state.session, group: state.session === null ? state.group : null, fresh });
  thread.toEnd();
}

function accepted(item, session) {
  if (state.session === null && item.group === state.group) {
    composer.moveTo(session);
    go(session, { replace: true });
  } else if (state.session === session && item.text.startsWith("/")) showWaiting();
}

function showWaiting() {
  thread.setWaiting(pending.all().filter(ofThisView), state.online);
  showWelcome();
}

function dropStale() {
  for (const item of pending.all()) {
    const command = item.state === "kept" && item.text.startsWith("/") && ofThisView(item);
    if (command && Date.now() - item.at > STALE) pending.drop(item.client);
  }
}

function edit(client) {
  const item = pending.get(client);
  if (!item) return;
  discard(client);
  const typed = byId("text").value;
  composer.fill(typed.trim() ? `${item.text}\n\n${typed}` : item.text);
  composer.focus();
}

function discard(client) {
  sender.discard(client);
  showWaiting();
}

// --- what is shown around it ----------------------------------------------------------------------------------------

function pageTitle() {
  const row = sidebar.row(state.session);
  const title = row?.title || state.head?.title || row?.preview || thread.opening;
  return state.session === null ? "New session" : title || "New session";
}

function showHead() {
  const row = sidebar.row(state.session);
  const source = row?.source ?? state.head?.source;
  byId("title").textContent = pageTitle();
  const started = state.head?.started_at;
  const day = started ? new Date(started * 1000).toLocaleDateString("en", { dateStyle: "medium" }) : null;
  byId("subtitle").textContent = [source && `Began in ${placeWords(source)}`, day].filter(Boolean).join(", ");
  byId("resume").hidden = !(state.session && state.head?.started_at);
  document.title = state.session === null ? "Threadline" : `${pageTitle()} – Threadline`;
}

const placeWords = (source) => ({ cli: "the terminal", web: "the browser" })[source] ?? sourceName(source);

function showWelcome() {
  byId("welcome").hidden = !(state.session === null || state.head !== null) || !thread.empty || thread.running;
}

/** Show what a failed request means; false when the page cannot go on. */
function failed(error) {
  if (!(error instanceof Refused)) throw error;
  if (error.status === 401) {
    lockedOut();
    return false;
  }
  if (error.passing) connection("lost", error.status === 0 ? undefined : error.message);
  else if (error.status !== 404) toast(error.message);
  return true;
}

function lockedOut() {
  stream.close();
  showGate();
}

async function copyResume() {
  const command = `threadline -r ${state.session}`;
  try {
    await navigator.clipboard.writeText(command);
    toast(`Copied. Paste it in a terminal: ${command}`);
  } catch {
    toast(`In a terminal: ${command}`);
  }
}

async function stop() {
  byId("stop").disabled = true;
  try {
    await ask(`/api/sessions/${encodeURIComponent(state.session)}/stop`, { method: "POST", body: {} });
  } catch (error) {
    byId("stop").disabled = false;
    failed(error);
  }
}

// --- start ----------------------------------------------------------------------------------------------------------

function wire() {
  globalThis.addEventListener("hashchange", () => {
    const { session, message } = address();
    open(session, message);
  });
  byId("new").addEventListener("click", () => {
    go(null);
    composer.focus();
  });
  byId("ideas").addEventListener("click", (event) => {
    const idea = event.target.closest("button");
    if (!idea) return;
    composer.fill(idea.dataset.fill);
    composer.focus();
  });
  byId("earlier").addEventListener("click", earlier);
  byId("stop").addEventListener("click", stop);
  byId("resume").addEventListener("click", copyResume);
  byId("banner-retry").addEventListener("click", tryNow);
  globalThis.addEventListener("online", tryNow);
  let asleep;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(asleep);
    if (document.hidden) asleep = setTimeout(() => stream.pause(), HIDDEN_FOR);
    else {
      stream.resume();
      document.title = state.session === null ? "Threadline" : `${pageTitle()} – Threadline`;
    }
  });
}

function tryNow() {
  stream.retry();
  sender.retry();
}

function start() {
  wire();
  wireShell();
  if (new URLSearchParams(location.search).has("token")) {
    history.replaceState(null, "", "/");
    showGate("That token is not the right one.");
    return;
  }
  const { session, message } = address();
  for (const item of pending.all()) if (item.state === "kept" && Date.now() - item.at > DAY) pending.drop(item.client);
  // A reload between "kept" and the move to the new session: go on to it.
  const begun = pending.all().findLast((item) => item.group && item.session && Date.now() - item.at < RECENT);
  const first = session ?? begun?.session ?? null;
  if (first !== session) history.replaceState(null, "", `#/s/${encodeURIComponent(first)}`);
  state.session = undefined;
  open(first, message);
  sender.pump();
  if (matchMedia("(min-width: 820px)").matches) composer.focus();
}

async function learnCommands() {
  try {
    composer.commands = (await ask("/api/commands")).commands;
  } catch (error) {
    failed(error);
  }
}

start();
