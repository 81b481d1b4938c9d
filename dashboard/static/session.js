// Signs this tab in, and tells the netsky that it was signed in to from any other
// program at the same address: after the daemon has ended, any user of the machine
// can take its port, and gets the page's requests and the cookie with them.
//
// At the login the browser gets a key. It is kept in sessionStorage, which belongs
// to this origin only, and is never sent again: the server proves that it knows the
// key, then the tab does, and gets a cookie and a pass that are valid until that
// server ends. Each answer of the server carries a proof as well.
"use strict";
window.netsky = (() => {
  const me = document.currentScript.dataset;
  const plain = !window.crypto?.subtle; // an unencrypted address of another machine: only the cookie is available
  const text = new TextEncoder();
  const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
  const random = () => hex(crypto.getRandomValues(new Uint8Array(16)));

  // Why there is no answer: "away" (no server, or an error), "stranger" (a server
  // that does not know the key), "out" (signed out), "keyless" (this tab has no key).
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

  // A tab that was opened by hand asks the others of this origin for a key. A page
  // from another program that had the port meanwhile has the same origin, so no tab
  // gives its key away unless the server has just proved itself.
  const others = plain || !window.BroadcastChannel ? null : new BroadcastChannel("netsky");
  let offered = null, waits = null; // accepts a key, and extends the wait, while this tab asks for one
  if (others) others.onmessage = ({ data }) => {
    if (data.want && held && pass) {
      others.postMessage({ soon: true });
      prove().then(() => others.postMessage({ held }), () => {});
    }
    if (data.soon) waits?.();
    if (data.held && data.held.key !== held?.key) offered?.(data.held);
  };

  // borrow returns the key of another tab to which the server has just proved itself,
  // if there is one and it differs from this tab's own.
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

  // prove runs the handshake; concurrent callers wait for the same one.
  const prove = () => (proving ||= greet().finally(() => { proving = null; }));

  let loaded = true; // no handshake since

  // greet runs the handshake with this tab's key. If there is none, or the server does
  // not know it, another tab's is tried, and kept only if the server proves that it
  // knows it; and only once, when the page has just been loaded from that server.
  // Later another program may answer, and a page of its own may offer its own key.
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
    const first = await post("/session", { id, nonce }, "omit"); // without the cookie: the server has not proved itself yet
    const { state, challenge, proof } = first.body;
    if (proof !== await mac("server", nonce, challenge, state)) throw new Away(first.status < 500 ? "stranger" : "away");
    if (state !== "known") { forget(); out = true; throw new Away("out"); }
    const second = await post("/session", { id, nonce, challenge, proof: await mac("tab", nonce, challenge) }, "same-origin");
    if (second.status !== 200) throw new Away("away");
    pass = second.body.tab;
  }

  // ask is fetch with a proof that the server has answered. An answer without one
  // counts as none; after a restart of the daemon the second try succeeds.
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

  // stream returns what a stream's request needs, after the handshake, and the proof
  // with which the server's stream starts.
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

  // ---- a page that was refused because the daemon has been restarted ----

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

  // signOut signs out this browser with all its tabs. The key is deleted once the
  // server has confirmed it: without an answer the browser is still signed in.
  async function signOut(form) {
    if (plain) return form.submit();
    try {
      const r = await ask(form.action, { method: "POST", redirect: "manual" });
      if (!r.ok) throw new Error(r.json().detail);
    } catch (e) {
      if (e.kind === "keyless") return form.submit(); // by the cookie, which is all this tab has
      if (!out) throw e;
    }
    forget();
    location.replace("/login");
  }

  return { ask, prove, stream, signOut, get keyless() { return !plain && !held; } };
})();
