// Signs this tab in, and keeps apart the netsky that it was signed in to and
// whatever else may listen at the same address: after the daemon's death any
// user of the machine can take its port, and gets all that the page asks for
// and the cookie with it.
//
// At the login the browser is given a key. It is in sessionStorage, which is of
// this origin alone, and is never sent again: the server proves that it knows
// the key, then the tab does, and is given a cookie and a pass that are good
// until that server ends. What the server answers is proved again, each time.
"use strict";
window.netsky = (() => {
  const me = document.currentScript.dataset;
  const plain = !window.crypto?.subtle; // an unencrypted address that is not this machine's: the cookie must do
  const text = new TextEncoder();
  const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
  const random = () => hex(crypto.getRandomValues(new Uint8Array(16)));

  // Why there is no answer: "away" (nobody, or an error), "stranger" (somebody
  // who does not know the key), "out" (signed out), "keyless" (this tab has none).
  class Away extends Error {
    constructor(kind) { super(kind); this.kind = kind; }
  }

  let held = null, imported = null, pass = "", proving = null, out = false;

  const isKey = (h) => /^[0-9a-f]{16}$/.test(h?.id) && /^[0-9a-f]{64}$/.test(h?.key);

  function hold(h, given = "") {
    if (!isKey(h)) return;
    held = { id: h.id, key: h.key }; imported = null; pass = given; out = false;
    try { sessionStorage.setItem("netsky", JSON.stringify(held)); } catch {}
  }

  function forget() {
    held = imported = null; pass = "";
    try { sessionStorage.removeItem("netsky"); } catch {}
  }

  try { hold(JSON.parse(sessionStorage.getItem("netsky"))); } catch {}

  // A tab that was opened by hand asks the others of this origin. A page that
  // whoever had the port meanwhile has served is of this origin, too: while that
  // one is there, and while nobody is, no tab gives its key away.
  const others = plain || !window.BroadcastChannel ? null : new BroadcastChannel("netsky");
  let offered = null, waits = null; // what takes a key, and what waits longer, while this tab asks for one
  if (others) others.onmessage = ({ data }) => {
    if (data.want && held && pass) {
      others.postMessage({ soon: true });
      prove().then(() => others.postMessage({ held }), () => {});
    }
    if (data.soon) waits?.();
    if (data.held && data.held.key !== held?.key) offered?.(data.held);
  };

  // borrow is the key of another tab that the server has proved itself to just
  // now, if there is one and it is not this tab's own.
  const borrow = () => new Promise((done) => {
    if (!others) return done(null);
    let late = setTimeout(done, 500, null);
    offered = (key) => { clearTimeout(late); done(key); };
    waits = () => { clearTimeout(late); late = setTimeout(done, 5000, null); waits = null; };
    others.postMessage({ want: true });
  }).finally(() => { offered = waits = null; });

  async function mac(...words) {
    imported ||= crypto.subtle.importKey("raw", Uint8Array.from(held.key.match(/../g), (x) => parseInt(x, 16)),
      { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return hex(await crypto.subtle.sign("HMAC", await imported, text.encode(words.join("\n"))));
  }

  async function post(path, body, credentials) {
    try {
      const r = await fetch(path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
        credentials, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(5000),
      });
      return { status: r.status, body: await r.json() };
    } catch { throw new Away("away"); }
  }

  // prove has both sides prove themselves; those who ask meanwhile wait for it.
  const prove = () => (proving ||= greet().finally(() => { proving = null; }));

  let loaded = true; // and no greeting since

  // greet proves with this tab's key. Another tab's is tried where this one has
  // none, or one that the server does not know, and kept only if the server proves
  // that it knows it; and only once, when the page has just come from that server.
  // Later somebody else may answer, and a page of theirs offer a key of theirs.
  async function greet() {
    if (plain) return;
    pass = "";
    const may = loaded, own = held;
    loaded = false;
    let why = new Away(out ? "out" : "keyless");
    if (own) {
      try { return await shake(); } catch (e) { why = e; }
      if (why.kind !== "stranger") throw why;
    }
    const other = may ? await borrow() : null;
    if (!isKey(other)) throw why;
    held = other; imported = null;
    try { await shake(); } catch (e) {
      if (e.kind === "out") throw e;
      held = own; imported = null;
      throw why;
    }
    hold(other, pass);
  }

  async function shake() {
    const { id } = held, nonce = random();
    const first = await post("/session", { id, nonce }, "omit"); // without the cookie: it is not known yet who that is
    const { state, challenge, proof } = first.body;
    if (proof !== await mac("server", nonce, challenge, state)) throw new Away(first.status < 500 ? "stranger" : "away");
    if (state !== "known") { forget(); out = true; throw new Away("out"); }
    const second = await post("/session", { id, nonce, challenge, proof: await mac("tab", nonce, challenge) }, "same-origin");
    if (second.status !== 200) throw new Away("away");
    pass = second.body.tab;
  }

  // ask is fetch, whose answer is the server's. One that does not prove it is as
  // none; after a restart of the daemon the second try does.
  async function ask(path, options = {}) {
    for (let last = plain; ; last = true) {
      if (!pass) await prove();
      const nonce = random();
      let r, body;
      try {
        r = await fetch(path, {
          cache: "no-store", redirect: "error", signal: AbortSignal.timeout(options.method ? 30000 : 15000), ...options,
          headers: { ...options.headers, ...(plain ? {} : { "Netsky-Tab": pass, "Netsky-Nonce": nonce }) },
        });
        body = await r.arrayBuffer();
      } catch { pass = ""; throw new Away("away"); }
      const answer = {
        ok: r.ok || r.type === "opaqueredirect", status: r.status, type: r.headers.get("Content-Type") || "",
        text: () => new TextDecoder().decode(body), json: () => JSON.parse(new TextDecoder().decode(body)),
      };
      if (plain && r.status === 401) throw new Away("out");
      if (plain) return answer;
      const sum = hex(await crypto.subtle.digest("SHA-256", body));
      if (r.headers.get("Netsky-Proof") === await mac("answer", nonce, r.status, sum)) return answer;
      pass = "";
      if (last) throw new Away("stranger");
    }
  }

  // stream is how a stream is asked for, after both have proved themselves, and
  // what it says first if it is the server's.
  async function stream() {
    await prove();
    if (plain) return { protocols: [], headers: {}, proof: "" };
    const nonce = random();
    return {
      protocols: ["netsky", "netsky-tab." + pass, "netsky-nonce." + nonce],
      headers: { "Netsky-Tab": pass, "Netsky-Nonce": nonce }, proof: await mac("stream", nonce),
    };
  }

  // ---- the login page ----

  async function signIn(form) {
    const code = form.elements.code.value.trim(), why = document.querySelector("#why");
    if (plain) return form.submit();
    try {
      const { status, body } = await post("/login", { code }, "same-origin");
      if (status !== 200) { why.textContent = body.detail || body.title; return; }
      hold(body);
      location.replace("/");
    } catch { why.textContent = "netsky does not answer."; }
  }

  if (me.login !== undefined) {
    const form = document.querySelector("#login");
    form.addEventListener("submit", (e) => { e.preventDefault(); signIn(form); });
    history.replaceState(null, "", "/login");
    if (form.elements.code.value) signIn(form);
  }

  // ---- a page that was refused: the daemon has been started anew since ----

  if (me.resume !== undefined) {
    const last = Number(sessionStorage.getItem("netsky-resumed"));
    if (!(Date.now() - last < 10000)) {
      prove().then(() => {
        if (plain) return;
        sessionStorage.setItem("netsky-resumed", Date.now());
        location.reload();
      }, () => {});
    }
  }

  // signOut signs out this browser with all its tabs. The key goes when the server
  // has said that it did: without an answer there is still something to sign out.
  async function signOut(form) {
    if (plain) return form.submit();
    try {
      const r = await ask(form.action, { method: "POST", redirect: "manual" });
      if (!r.ok) throw new Error(r.json().detail);
    } catch (e) {
      if (e.kind === "keyless") return form.submit(); // by the cookie, which is all it has
      if (!out) throw e;
    }
    forget();
    location.replace("/login");
  }

  return { ask, prove, stream, signOut, get keyless() { return !plain && !held; } };
})();
