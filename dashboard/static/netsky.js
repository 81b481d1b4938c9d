// Keeps the page up to date. The page comes complete from the server and works
// without this script: an event only says that something has changed, then the
// page is fetched again and what differs is replaced. Terminals are drawn from
// the events themselves.
"use strict";
(() => {
  const root = document.documentElement;
  const $ = (sel, at = document) => at.querySelector(sel);
  const $$ = (sel, at = document) => [...at.querySelectorAll(sel)];
  root.classList.add("js");

  // ---- what has changed ----

  // Not n.id: in a form with a field named "id" that is the field.
  const keyOf = (n) => (n.nodeType === 1 ? n.getAttribute("data-key") || n.getAttribute("id") || "" : "");

  // morph makes the element a like b. Elements with the same data-keep are left
  // alone: they hold the reader's input or the script's state.
  function morph(a, b) {
    if (a.isEqualNode(b)) return;
    if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName || keyOf(a) !== keyOf(b)) return a.replaceWith(b);
    if (a.nodeType !== 1) { a.data = b.data; return; }
    if (a.dataset.keep !== undefined && a.dataset.keep === b.dataset.keep) return;
    for (const { name } of [...a.attributes]) if (!b.hasAttribute(name) && name !== "open") a.removeAttribute(name);
    for (const { name, value } of [...b.attributes]) if (name !== "open" && a.getAttribute(name) !== value) a.setAttribute(name, value);
    children(a, b);
  }

  function children(a, b) {
    const keyed = new Map(), rest = new Set(a.childNodes);
    for (const n of rest) if (keyOf(n)) keyed.set(keyOf(n), n);
    let at = a.firstChild;
    for (const n of [...b.childNodes]) {
      const key = keyOf(n);
      let same = key ? keyed.get(key) : at;
      while (!key && same && (keyOf(same) || same.nodeName !== n.nodeName)) same = same.nextSibling;
      if (!same || !rest.delete(same)) {
        a.insertBefore(n, at);
        if (key && keyed.size) arrived(n);
        continue;
      }
      if (same === at) at = at.nextSibling; else a.insertBefore(same, at);
      morph(same, n);
    }
    for (const n of rest) n.remove();
  }

  // arrived is called for new elements; it announces them to screen readers.
  function arrived(n) {
    n.classList.add("fresh");
    if (n.dataset.say) say(n.dataset.say);
  }

  let saying = [];
  function say(text) {
    saying.push(text);
    if (saying.length === 1) setTimeout(() => { $("#said").textContent = saying.slice(0, 3).join(". "); saying = []; }, 400);
  }

  // ---- fetching the page again ----

  let wanted = 0, fetching = false, last = 0;
  const most = 700; // ms between two fetches

  function refresh() {
    if (wanted || document.hidden) { missed = missed || document.hidden; return; }
    wanted = setTimeout(fetchPage, Math.max(60, last + most - Date.now()));
  }

  async function fetchPage() {
    if (fetching) { wanted = setTimeout(fetchPage, 200); return; }
    wanted = 0; fetching = true; last = Date.now();
    const asked = location.href; // Back may lead elsewhere meanwhile, and fetches that
    let failed = false;
    try {
      const r = await netsky.ask(asked, { headers: { Accept: "text/html", "Netsky-Update": $("[data-have]")?.dataset.have || "1" } });
      if (asked === location.href && r.type.startsWith("text/html") && r.status !== 401) show(r.text());
    } catch { failed = true; } finally { fetching = false; }
    if (failed && conn) refresh(); // a new connection would fetch it anyway
  }

  function show(html) {
    const doc = new DOMParser().parseFromString(html, "text/html");
    for (const a of $$("[data-live]")) {
      const b = $(`[data-live="${a.dataset.live}"]`, doc);
      if (b) morph(a, b);
    }
    document.title = doc.title;
    document.body.dataset.known = doc.body.dataset.known || "";
    adopt();
    if (looking().join() !== watched) watch();
  }

  // Why the page gets no updates, if trying again alone does not help.
  const reasons = {
    out: "You are signed out. Run netsky dashboard in a terminal for a link that signs you in.",
    keyless: "This tab is read-only and shows changes only when you reload it. Run netsky dashboard in a terminal for a link that signs it in fully.",
    stranger: "The server at this address is not the netsky that this tab was signed in to, or all browsers were signed out with --rotate. If the page does not reconnect by itself, close this tab and run netsky dashboard in a terminal for a new link. Do not reload: another program may be using the port.",
  };

  function explain(kind) {
    const text = reasons[kind] || "", old = $("#why-away");
    if ((old?.textContent || "") === text) return;
    old?.remove();
    if (!text) return;
    const p = document.createElement("p");
    p.className = "error"; p.id = "why-away"; p.setAttribute("role", "alert");
    p.textContent = text;
    $(".errors").append(p);
  }

  // ---- what the page follows ----

  let conn = null, fails = 0, lastEvent = "", missed = false, greeted = false;
  let heardAt = Date.now(), away = false; // when the server was last heard; it is away now

  let watched = ""; // the terminals requested last

  // watch requests the terminals that are on the page now.
  function watch() {
    watched = looking().join();
    if (conn?.watch) conn.watch(looking()); else conn?.close();
  }

  const looking = () => (document.hidden ? [] : [...new Set($$("[data-pane]").map((p) => p.dataset.pane))]);

  function status(kind, text) {
    const el = $("#link");
    el.className = "link " + kind;
    if (el.textContent !== text) el.textContent = text;
  }

  async function connect() {
    let how;
    try { how = await netsky.stream(); } catch (e) {
      explain(e.kind);
      return lost(e.kind);
    }
    const q = new URLSearchParams();
    if (lastEvent) q.set("after", lastEvent);
    watched = looking().join();
    if (watched) q.set("watch", watched);
    // Every third try uses SSE, which gets through where a websocket does not.
    if (fails % 3 === 2 || !window.WebSocket) return follow(q, how);
    const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/ws?" + q, how.protocols);
    const asked = watched;
    let proved = !how.proof;
    const started = () => { connected("live"); if (watched !== asked) watch(); }; // the page may have changed since
    conn = { close: () => ws.close(), watch: (ids) => ws.readyState === 1 && ws.send(JSON.stringify({ watch: ids })) };
    const late = setTimeout(() => { if (!proved || ws.readyState !== 1) ws.close(); }, 5000);
    ws.onopen = () => { if (proved) started(); };
    ws.onmessage = (e) => {
      if (proved) return heard(e.data);
      if (e.data !== JSON.stringify({ proof: how.proof })) return ws.close();
      proved = true;
      started();
    };
    ws.onclose = () => { clearTimeout(late); lost(); };
  }

  // follow is the same by SSE. EventSource can't send the tab's headers.
  async function follow(q, how) {
    const end = new AbortController();
    const late = setTimeout(() => end.abort(), 5000);
    conn = { close: () => end.abort(), watch: null };
    try {
      const r = await fetch("/events?" + q, { headers: how.headers, cache: "no-store", redirect: "error", signal: end.signal });
      if (!r.ok || how.proof && r.headers.get("Netsky-Proof") !== how.proof) throw new Error("not the server");
      clearTimeout(late);
      connected("live");
      const from = r.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let left = ""; ;) {
        const { done, value } = await from.read();
        if (done) break;
        heardAt = Date.now();
        const lines = (left + value).split("\n");
        left = lines.pop();
        for (const line of lines) if (line.startsWith("data: ")) heard(line.slice(6));
      }
    } catch {}
    clearTimeout(late);
    end.abort();
    lost();
  }

  function connected(text) {
    fails = 0;
    heardAt = Date.now();
    explain("");
    leave(false);
    status("on", text);
    if (greeted) { say("Connected again"); refresh(); }
    greeted = true;
  }

  function lost(kind) {
    if (!conn && !kind) return;
    conn = null;
    fails++;
    setTimeout(() => { if (!conn || away) leave(true); }, fails > 1 || kind ? 0 : 400);
    const rest = kind && kind !== "away" ? 3000 : 250 * 2 ** Math.min(fails, 5);
    setTimeout(connect, Math.min(5000, rest) * (0.75 + Math.random() / 2));
  }

  // leave greys the page while the server is away: what it shows may be outdated.
  function leave(is) {
    away = is;
    root.classList.toggle("away-server", is);
    stale();
  }

  function stale() {
    if (!away) return;
    const since = span(Date.now() - heardAt);
    status("off", "as of " + since + (since === "now" ? "" : " ago"));
  }

  // A hung server keeps its connections open.
  async function beat() {
    if (away || !conn || document.hidden || Date.now() - heardAt < 10000) return;
    const asked = conn;
    try {
      await netsky.ask("/healthz", { signal: AbortSignal.timeout(5000) });
      heardAt = Date.now();
    } catch { if (conn === asked) { leave(true); asked.close(); } }
  }

  function heard(data) {
    heardAt = Date.now();
    const e = JSON.parse(data);
    if (e.key === "hello") return hello(e.data);
    if (e.key.startsWith("pane:")) return terminal(e.key.slice(5), e.data);
    noticed(e.key);
    if (e.key === "records") { lastEvent = String(e.data.last); followSaid(); }
    if (!e.v || !document.body.dataset.known?.split(" ").includes(e.key + "=" + e.v)) refresh(); // else the page already shows it
  }

  // A newer netsky may have other pages and another script.
  function hello({ version }) {
    if (version === document.body.dataset.version) return;
    if ($("#text")?.value) status("on stale", "updated: reload"); else location.reload();
  }

  document.addEventListener("visibilitychange", () => {
    if (looking().join() !== watched) watch();
    if (!document.hidden && missed) { missed = false; refresh(); }
  });
  addEventListener("focus", refresh); // the reader may have read mail in a terminal
  addEventListener("pageshow", (e) => { if (e.persisted) { conn?.close(); refresh(); } });

  // ---- terminals ----

  const frames = new Map(); // agent → what has arrived and is not drawn yet
  let drawing = 0;

  function terminal(agent, data) {
    const old = frames.get(agent);
    if (data.changed && old) { // moved rows refer to the frame before
      old.later.push(data);
      if (old.later.length > 100) return draw();
    } else { data.later = []; frames.set(agent, data); }
    drawing = drawing || requestAnimationFrame(draw);
  }

  function draw() {
    cancelAnimationFrame(drawing);
    drawing = 0;
    for (const [agent, data] of frames)
      for (const glass of $$(`[data-pane="${CSS.escape(agent)}"]`)) for (const d of [data, ...data.later]) drawPane(glass, d);
    frames.clear();
  }

  function drawPane(glass, data) {
    const screen = $("[data-screen]", glass), unseen = $("[data-unseen]", glass);
    unseen.hidden = !data.error;
    unseen.textContent = data.error || "";
    if (data.error) return;
    const rows = screen.getElementsByClassName("r");
    keepAbove($(".history", glass), [...rows], data);
    if (data.rows) {
      const cells = Math.min(240, Math.max(40, Math.ceil(data.width / 20) * 20));
      glass.className = "glass c" + cells;
      while (rows.length > data.rows.length) rows[rows.length - 1].remove();
      data.rows.forEach((row, i) => {
        if (!rows[i]) { const r = document.createElement("span"); r.className = "r"; screen.append(r); }
        drawRow(rows[i], row);
      });
    } else {
      if (data.moved) moveRows(screen, [...rows], data);
      for (const [i, row] of Object.entries(data.changed || {})) if (rows[i]) drawRow(rows[i], row);
    }
    drawCursor(screen, rows, data);
    fitRows(glass, data.cursor_y);
  }

  // fitRows makes one of several terminals as high as its used rows.
  function fitRows(glass, cursor) {
    if (glass.closest(".large")) return;
    const screen = $("[data-screen]", glass), rows = screen.getElementsByClassName("r");
    let used = rows.length;
    while (used > cursor + 1 && used > 1 && !rows[used - 1].textContent.trim()) used--;
    const height = used === rows.length ? "" : `calc(${used} * var(--row) + 1.1rem)`;
    if (screen.style.maxHeight !== height) screen.style.maxHeight = height;
  }

  // keepAbove keeps the history above the screen complete: rows that scroll off the
  // top are added to it, and a mark where it is unknown which have.
  function keepAbove(above, rows, { rows: all, moved, changed }) {
    if (!above) return;
    const text = (row) => row.map((run) => run.text).join("");
    let gone = 0;
    if (moved) gone = moved[0][0] === 0 && moved[0][1] > 0 ? moved[0][1] : 0;
    else if (all && all.length) {
      gone = rows.findIndex((r, i) => all.slice(0, 3).every((row, n) => rows[i + n]?.textContent === text(row)));
    } else if (Object.keys(changed || {}).length > rows.length / 2) gone = -1;
    if (gone > 0) above.append(...rows.slice(0, gone).map((r) => r.cloneNode(true)));
    if (gone < 0 && !above.lastElementChild?.matches(".gap")) {
      const mark = document.createElement("span");
      mark.className = "r gap";
      mark.textContent = "⋯ rows may be missing here: reload to see them";
      above.append(mark);
    }
    while (above.childElementCount > 6000) above.firstElementChild.remove();
  }

  // moveRows moves rows to their new places. Rows that are gone take the places of
  // changed ones, which are drawn afterwards.
  function moveRows(screen, rows, { moved, changed }) {
    const now = [...rows], places = new Set(), used = new Set();
    for (const [to, , n] of moved) for (let i = 0; i < n; i++) places.add(to + i);
    rows.forEach((r, i) => { if (!places.has(i) && !(i in changed)) used.add(r); });
    for (const [to, from, n] of moved) for (let i = 0; i < n; i++) {
      const r = rows[from + i];
      now[to + i] = used.has(r) ? r.cloneNode(true) : r;
      used.add(r);
    }
    const left = rows.filter((r) => !used.has(r));
    for (const r of left) r.remove();
    for (const i of Object.keys(changed)) now[i] = left.shift() || rows[i].cloneNode();
    let at = screen.firstElementChild;
    for (const r of now) if (r === at) at = at.nextElementSibling; else screen.insertBefore(r, at);
  }

  function drawRow(el, row) {
    el.replaceChildren(...row.map((run) => {
      if (!run.class && !run.fg && !run.bg && !run.link) return run.text;
      const n = document.createElement(run.link ? "a" : "span");
      if (run.class) n.className = run.class;
      if (run.fg) n.style.color = run.fg;
      if (run.bg) n.style.backgroundColor = run.bg;
      if (run.link && /^https?:\/\//.test(run.link)) { n.href = run.link; n.target = "_blank"; n.rel = "noopener noreferrer nofollow"; }
      if (/(?:^| )[cw]s$/.test(run.class)) n.append(...[...run.text].map(boxed)); else n.textContent = run.text;
      return n;
    }));
  }

  // boxed makes the element for a character in its cell; a class draws lines and blocks.
  function boxed(c) {
    const n = document.createElement("span"), code = c.codePointAt(0);
    if (code >= 0x2500 && code <= 0x259f) n.className = "x" + code.toString(16);
    n.textContent = c;
    return n;
  }

  function drawCursor(screen, rows, { cursor_x: x, cursor_y: y }) {
    let c = $(".cursor", screen);
    if (y < 0 || !rows[y]) { c?.remove(); return; }
    if (!c) { c = document.createElement("i"); c.className = "cursor"; c.setAttribute("aria-hidden", "true"); screen.append(c); }
    c.style.top = rows[y].offsetTop + "px";
    c.style.left = `calc(.7rem + ${x}ch)`;
  }

  // ---- sending messages ----

  let said = null; // the last message: its id and its state

  async function send(form) {
    const button = $("button", form), text = form.elements.text, answer = $("#answer");
    if (!text.value.trim()) { text.focus(); return tell(answer, "bad", "Type a message first."); }
    button.disabled = true;
    const to = form.elements.to.value;
    try {
      await netsky.prove(); // send the text to this server only
      const r = await netsky.ask("/api/user-message", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ to, text: text.value, id: form.elements.id.value, ...(form.elements.in_reply_to && { in_reply_to: form.elements.in_reply_to.value }) }),
      });
      const a = r.json();
      if (!r.ok) {
        if (r.status !== 500) { form.elements.id.value = newId(); keepDraft(form); } // after a 500 it may have been sent
        return tell(answer, "bad", a.detail || a.title);
      }
      said = { id: a.id, to, state: "queued" };
      text.value = "";
      dropDraft(said.id);
      text.removeAttribute("aria-invalid");
      form.elements.id.value = newId();
      tellSaid();
      refresh();
    } catch (e) {
      tell(answer, "bad", reasons[e.kind] || "netsky does not answer. Your message is still here; send it again.");
    } finally { button.disabled = false; }
  }

  function newId() {
    const b = crypto.getRandomValues(new Uint8Array(12));
    return "web-" + [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  }

  function tell(el, tone, ...words) {
    el.className = "answer" + (tone ? " tone-" + tone : "");
    el.replaceChildren(...words);
  }

  function tellSaid() {
    const a = document.createElement("a");
    a.href = "/messages/" + encodeURIComponent(said.id);
    a.textContent = "Your message to " + said.to;
    const words = { queued: " waits in its inbox.", claimed: " has been picked up.", delivered: " has been delivered.", answered: " has been answered." };
    tell($("#answer"), { queued: "", claimed: "busy", delivered: "good", answered: "good" }[said.state] ?? "bad", a, words[said.state] || ": " + said.state + ".");
  }

  async function followSaid() {
    if (!said || ["answered", "failed", "poisoned", "cancelled", "expired"].includes(said.state)) return;
    try {
      const r = await netsky.ask("/api/deliveries/" + encodeURIComponent(said.id));
      const state = r.ok && r.json().items[0].state;
      if (state && state !== said.state) { said.state = state; tellSaid(); }
    } catch {}
  }

  document.addEventListener("submit", (e) => {
    if (e.target.matches("form.sign-out")) { e.preventDefault(); return signOut(e.target); }
    if (e.target.matches("form.read")) { e.preventDefault(); return markRead(e.target); }
    if (e.target.matches("form.approval")) { e.preventDefault(); return answer(e.target); }
    if (e.target.matches("form.remark")) { e.preventDefault(); return remark(e.target); }
    if (!e.target.matches("form.say")) return;
    e.preventDefault();
    send(e.target);
  });

  async function markRead(form) {
    const button = $("button", form);
    const at = form.closest(".row, .inbox") || form;
    button.disabled = true;
    complain(at, "");
    try {
      await netsky.prove();
      const r = await netsky.ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
      if (r.ok) return refresh();
      throw new Error(r.json().detail);
    } catch (e) { complain(at, "Not marked as read: " + whyNot(e)); } finally { button.disabled = false; }
  }

  async function answer(form) {
    const button = $("button", form);
    button.disabled = true;
    complain(form, "");
    try {
      await netsky.prove(); // the answer is for this server only
      const r = await netsky.ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
      if (!r.ok) throw new Error(r.json().detail);
      say(form.elements.answer.value === "deny" ? "Denied" : "Allowed once");
      return refresh();
    } catch (e) { complain(form, whyNot(e)); } finally { button.disabled = false; }
  }

  // What is confirmed is shown once more; the button below it must be seen.
  document.addEventListener("toggle", (e) => {
    if (e.target.open && e.target.matches?.(".decide details")) $("button[type=submit]", e.target)?.scrollIntoView({ block: "nearest" });
  }, true);

  // remark submits a form about comments, and shows the page as it is then.
  async function remark(form) {
    const button = $("button", form), next = form.dataset.next;
    button.disabled = true;
    complain(form, "");
    try {
      await netsky.prove();
      const r = await netsky.ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
      if (!r.ok) throw new Error(r.json().detail);
      if (form.matches(".ask-form")) dropDraft(form.elements.key.value);
      say(form.dataset.done);
      if (!next) return refresh();
      history.replaceState(null, "", next);
      await elsewhere();
      const to = location.hash && document.getElementById(location.hash.slice(1));
      to?.scrollIntoView({ block: "center" });
      to?.querySelector("a, summary")?.focus();
    } catch (e) { complain(form, whyNot(e)); } finally { button.disabled = false; }
  }

  async function signOut(form) {
    const button = $("button", form);
    button.disabled = true;
    complain(form, "");
    try { await netsky.signOut(form); } catch (e) { complain(form, "Not signed out: " + whyNot(e)); } finally { button.disabled = false; }
  }

  const whyNot = (e) => reasons[e.kind] || (e.kind || !e.message ? "netsky does not answer. Try again when it does." : e.message);

  // complain shows an error beside the element it concerns, or removes it for "".
  function complain(at, text) {
    $(":scope > .why-not", at)?.remove();
    if (!text) return;
    const p = document.createElement("p");
    p.className = "why-not tone-bad"; p.setAttribute("role", "alert");
    p.textContent = text;
    at.append(p);
  }

  // ---- drafts ----

  // What is written and not sent is kept in the tab: one message for each agent, one
  // comment for each line. It keeps its id, so that what is sent again after a reload
  // is delivered once.
  const idOf = (form) => form.elements.id || form.elements.key;
  const draftOf = (form) => "netsky-draft " + (form.elements.at ? location.pathname + " " + form.elements.at.value : form.elements.to.value + " " + (form.elements.in_reply_to?.value || ""));

  function keepDraft(form) {
    const text = form.elements.text.value, id = idOf(form).value;
    dropDraft(id);
    try { if (text.trim()) sessionStorage.setItem(draftOf(form), JSON.stringify({ text, id })); } catch {} // the browser keeps nothing: then a reload forgets
  }

  // dropDraft forgets what has that id, to whomever it was to go.
  function dropDraft(id) {
    try {
      for (const k of Object.keys(sessionStorage))
        if (k.startsWith("netsky-draft ") && JSON.parse(sessionStorage.getItem(k)).id === id) sessionStorage.removeItem(k);
    } catch {}
  }

  // A collapsed box shows only its placeholder, so that names the recipient.
  function nameReader(form) {
    const { to, text } = form.elements;
    if (to.matches("select")) text.placeholder = "Message to " + to.value;
  }

  function restoreDraft(form) {
    if (form.elements.to) nameReader(form);
    if (form.elements.text.value) return;
    try {
      const { text, id } = JSON.parse(sessionStorage.getItem(draftOf(form))) || {};
      if (!text) return;
      form.elements.text.value = text;
      idOf(form).value = id;
    } catch {}
  }

  document.addEventListener("input", (e) => { if (e.target.matches(".say textarea, .ask-form textarea")) keepDraft(e.target.form); });
  document.addEventListener("change", (e) => {
    if (!e.target.matches(".say select")) return;
    const form = e.target.form;
    nameReader(form);
    if (form.elements.text.value.trim()) keepDraft(form); // the text moves along
    else restoreDraft(form);
  });

  // ---- scrolling ----

  // A tall terminal stays scrolled to its cursor, or to the last line that is not
  // blank, unless the reader has scrolled away from it.
  const put = new WeakMap(), held = new WeakSet();
  const changed = new MutationObserver((list) => new Set(list.map((m) => m.target.nodeType === 1 && m.target.closest(".glass"))).forEach((g) => g && toCursor(g)));

  function toCursor(glass) {
    const screen = $("[data-screen]", glass);
    if (!screen || held.has(glass) || $(".history", glass)) return;
    const at = $(".cursor", screen) || [...$$(".r", screen)].reverse().find((r) => r.textContent.trim());
    if (!at) return;
    const box = at.getBoundingClientRect(), top = box.top - glass.getBoundingClientRect().top + glass.scrollTop;
    glass.scrollTop = Math.max(0, top + 6 * box.height - glass.clientHeight);
    put.set(glass, glass.scrollTop);
  }

  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"])
    document.addEventListener(kind, (e) => { const g = e.target.closest?.(".glass"); if (g && g.scrollHeight > g.clientHeight) held.add(g); }, { passive: true });
  document.addEventListener("scroll", (e) => {
    if (e.target.matches?.(".glass") && Math.abs(e.target.scrollTop - put.get(e.target)) < 4) held.delete(e.target);
  }, { capture: true, passive: true });
  addEventListener("resize", () => $$(".large .glass").forEach(toCursor));

  // Going back from a terminal's history leads to its screen.
  let at = location.pathname + location.search;
  async function elsewhere() {
    if (at === location.pathname + location.search) return; // another place on the same page
    at = location.pathname + location.search;
    last = 0;
    await fetchPage();
    conn?.close(); // so that the new terminal is drawn completely
  }
  addEventListener("popstate", elsewhere);

  // ---- notifications ----

  // A hidden tab asks now and then what needs the owner: the title and the icon show
  // how many items, and a notification shows a new one, if the owner has turned them
  // on. It names the agent and the need, and contains nothing that was written.
  const bell = $("#notify"), noticeRest = 5000;
  let asking = 0, knownNeeds = null;
  const wantsNotices = () => { try { return localStorage.getItem("netsky-notices") === "on" && Notification.permission === "granted"; } catch { return false; } };

  function badge(n) {
    const icon = $("#icon"), url = n ? bell.dataset.needs : bell.dataset.calm;
    if (icon.getAttribute("href") !== url) icon.setAttribute("href", url);
    document.title = (n ? "(" + n + ") " : "") + document.title.replace(/^\(\d+\) /, "");
  }

  function noticed(key) {
    if (asking || !(key === "approvals" || key === "records" || key.startsWith("agent:"))) return;
    if (document.hidden || wantsNotices()) asking = setTimeout(askNeeds, noticeRest);
  }

  async function askNeeds() {
    asking = 0;
    try {
      const r = await netsky.ask("/api/needs");
      if (!r.ok) return;
      const { items, unread } = r.json(), all = [...items, ...unread];
      badge(items.length);
      const before = knownNeeds;
      knownNeeds = new Set(all.map((i) => i.key));
      if (!before || !wantsNotices() || document.hasFocus()) return;
      for (const i of all.filter((i) => !before.has(i.key)).slice(0, 5)) {
        const n = new Notification("netsky", { body: i.title, tag: i.key });
        n.onclick = () => { focus(); n.close(); if (location.pathname !== "/") location.href = "/"; };
      }
    } catch {}
  }

  function showBell() {
    bell.hidden = !window.Notification || !isSecureContext || Notification.permission === "denied";
    $("button", bell).setAttribute("aria-pressed", String(wantsNotices()));
  }

  $("button", bell).addEventListener("click", async () => {
    const on = !wantsNotices();
    if (on && Notification.permission !== "granted") await Notification.requestPermission();
    try { localStorage.setItem("netsky-notices", on ? "on" : "off"); } catch {}
    showBell();
    if (wantsNotices()) { say("You will be notified"); askNeeds(); }
  });
  showBell();
  if (wantsNotices()) askNeeds();

  // ---- small conveniences ----

  addEventListener("formdata", (e) => { // leave out empty filters
    if (e.target.method !== "get") return;
    for (const [k, v] of [...e.formData]) if (v === "") e.formData.delete(k);
  });
  document.addEventListener("change", (e) => { if (e.target.matches(".filters select")) e.target.form.requestSubmit(); });

  document.addEventListener("click", async (e) => {
    const button = e.target.closest("[data-copy]"), above = e.target.closest("[data-above]"), given = e.target.closest(".ask-form a");
    if (given) dropDraft(given.closest("form").elements.key.value); // cancelled
    if (button) {
      try { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = "Copied"; } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } else if (above && !e.metaKey && !e.ctrlKey && !e.shiftKey) {
      e.preventDefault();
      history.pushState(null, "", above.href);
      await elsewhere();
    }
  });

  document.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && e.target.matches(".say textarea")) return e.target.form.requestSubmit();
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select")) return;
    const to = { "/": "#text", f: "#find" }[e.key];
    if (to && $(to)) { e.preventDefault(); $(to).focus(); }
    const link = { j: "main a[rel=next]", k: "main a[rel=prev]" }[e.key];
    if (link && !e.target.closest(".glass")) $(link)?.click();
  });

  // adopt sets on new elements what the page's policy forbids the server to set inline.
  function adopt() {
    localTimes();
    for (const n of $$("[data-fg], [data-bg]")) {
      if (n.dataset.fg) n.style.color = n.dataset.fg;
      if (n.dataset.bg) n.style.backgroundColor = n.dataset.bg;
      n.removeAttribute("data-fg"); n.removeAttribute("data-bg");
    }
    for (const g of $$(".glass:not([data-seen])")) {
      g.dataset.seen = "";
      if (g.closest(".large")) changed.observe(g, { childList: true, subtree: true, attributes: true, attributeFilter: ["style"] });
      toCursor(g);
      if ($(".history", g)) g.scrollTop = $("[data-screen]", g).offsetTop - 40;
    }
  }

  // localTimes writes times in the browser's time zone.
  const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const zoned = Object.fromEntries(Object.entries({
    clock, day: { weekday: "long", day: "numeric", month: "long", year: "numeric" },
    full: { weekday: "short", day: "numeric", month: "short", year: "numeric", ...clock, timeZoneName: "short" },
  }).map(([k, o]) => [k, new Intl.DateTimeFormat("en-GB", o)]));

  function localTimes() {
    let day = "";
    for (const t of $$("time")) {
      const d = new Date(t.dateTime), kind = t.dataset.at;
      if (isNaN(d)) continue;
      if (t.title) t.title = zoned.full.format(d);
      if (!kind) continue;
      let text = zoned[kind].format(d);
      if (kind === "day") {
        t.closest(".day").hidden = text === day;
        day = text;
      } else if (kind === "clock" && day && zoned.day.format(d) !== day) text = zoned.day.format(d).slice(0, 3) + " " + text; // after midnight here
      if (t.textContent !== text) t.textContent = text;
    }
  }

  // Ages use the server's clock: skew is how far it is ahead of this one.
  let skew = 0;
  const pulse = $("[data-now]");
  const setClock = () => { skew = Number(pulse.dataset.now) - Date.now(); badge(Number(pulse.dataset.needs)); };
  new MutationObserver(setClock).observe(pulse, { attributes: true, attributeFilter: ["data-now"] });
  setClock();

  function span(ms) {
    const s = Math.floor(ms / 1000);
    if (s < 1) return "now";
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    return s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
  }

  function ages() {
    if (document.hidden || away) return;
    for (const t of $$("time[data-ago]")) {
      let text = span(Date.now() + skew - Date.parse(t.dateTime));
      if (t.dataset.ago === "past" && text !== "now") text += " ago";
      if (t.textContent !== text) t.textContent = text;
    }
  }

  adopt();
  $$("form.say, form.ask-form").forEach(restoreDraft);
  setInterval(() => { ages(); stale(); beat(); }, 1000);
  connect();
})();
