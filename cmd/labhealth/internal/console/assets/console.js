// Everything here is an addition: each page reads and works without it. Loaded in <head>, so that the theme is set before paint.
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  const $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];

  // for screen readers: at most one announcement every 5 s, the latest, and how many there were
  let said = 0, waiting = 0, saying;
  const say = (text) => {
    waiting++;
    clearTimeout(saying);
    saying = setTimeout(() => {
      const s = $("#say");
      if (s) s.textContent = text + (waiting > 1 ? ", " + (waiting - 1) + " more" : "");
      said = Date.now();
      waiting = 0;
    }, Math.max(0, said + 5000 - Date.now()));
  };
  const tell = (text) => { const s = $("#say"); if (s) s.textContent = text; }; // what the user just did

  // filter: <input data-filter="#rows"> hides the items of #rows that lack one of the words
  const filter = (input, quietly) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const items = $$(input.dataset.filter + " [data-item]");
    let n = 0;
    for (const it of items) {
      const text = (it.dataset.item + " " + it.textContent).toLowerCase();
      it.hidden = !words.every((w) => text.includes(w));
      if (!it.hidden) n++;
    }
    const none = $("[data-none]");
    if (none) none.hidden = n > 0;
    $$("[data-lane]").forEach((l) => { const c = $(".n", l); if (!c) return; c.dataset.n ??= c.textContent; c.textContent = words.length ? $$("[data-item]:not([hidden])", l).length : c.dataset.n; });
    if (!quietly) tell(n + " of " + items.length);
  };

  // j and k: the list of the page is whatever carries data-item
  const move = (by) => {
    const items = $$("[data-item]").filter((i) => i.offsetParent !== null);
    if (!items.length) return;
    let i = items.findIndex((x) => x.classList.contains("at"));
    if (i < 0) i = items.findIndex((x) => x.classList.contains("on"));
    if (i >= 0) items[i].classList.remove("at");
    i = i < 0 ? 0 : Math.min(items.length - 1, Math.max(0, i + by));
    items[i].classList.add("at");
    const a = $("a[href], button", items[i]);
    if (a) a.focus({ preventScroll: true });
    items[i].scrollIntoView({ block: "nearest" });
  };
  const closeAll = () => $$("details.menu[open]").forEach((d) => { d.open = false; $("summary", d).focus(); });
  const help = () => { const h = $("#help"); if (h && h.togglePopover) h.togglePopover(); };
  const theme = () => { const b = $("[data-act=theme]"); if (b) b.click(); };
  const pages = { o: "orders", u: "users", d: "deliveries", f: "faults", r: "requests" };
  let g = 0;

  document.addEventListener("keydown", (e) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && !/^(checkbox|radio|range)$/.test(e.target.type);
    if (e.key === "Escape") {
      if ($("details.menu[open]")) return closeAll();
      if (e.target.tagName === "INPUT" && typing) { e.target.value = ""; if (e.target.dataset.filter) filter(e.target); return e.target.blur(); }
      if (typing) return e.target.blur();
      const close = $("#flash [data-act=close]") || $$(".back").find((x) => x.offsetParent);
      if (close) close.click();
      return;
    }
    if (typing || e.metaKey || e.ctrlKey || e.altKey) return;
    if (Date.now() - g < 900 && pages[e.key]) { location.href = "/console/" + pages[e.key]; return; }
    g = e.key === "g" ? Date.now() : 0;
    const own = /^[a-z]$/.test(e.key) && ($(".at [data-key=" + e.key + "]") || $$("[data-key=" + e.key + "]").find((x) => x.offsetParent));
    if (e.key === "j" || e.key === "k") move(e.key === "j" ? 1 : -1);
    else if (e.key === "/") { const f = $$("[data-filter], [data-search]").find((x) => x.offsetParent); if (f) { f.focus(); f.select(); } }
    else if (e.key === "?") help();
    else if (e.key === "t") theme();
    else if (own) own.click();
    else return;
    e.preventDefault();
  });

  // a link within [data-pane=id] replaces the element with that id by the one of the page that it leads to, so that the list stays where it is
  let loads = 0;
  const open = async (href, push) => {
    const n = ++loads;
    try {
      const page = new DOMParser().parseFromString(await fetched(fetch(href)), "text/html"); // runs no script
      if (n !== loads) return;
      for (const id of new Set($$("[data-pane]").map((e) => e.dataset.pane))) {
        const from = page.getElementById(id), to = document.getElementById(id);
        if (!from || !to) return location.assign(href);
        to.replaceWith(document.adoptNode(from));
      }
      if (push) history.pushState(null, "", href);
      document.title = page.title;
      $$("[data-item]").forEach((row) => {
        const on = page.getElementById(row.id), is = !!on && on.classList.contains("on"), a = $("a", row);
        row.classList.toggle("on", is);
        if (is) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
      });
      connect(page.body.dataset.live, page.body.dataset.since);
    } catch { location.assign(href); }
  };
  const fetched = async (response) => {
    const r = await response;
    if (!r.ok) throw new Error(r.status);
    return r.text();
  };

  // plots: one line through all of them; the values are read from data-v, one for each slot, empty in a gap. The listeners are on
  // the document, so that plots that a live change replaces keep working, with the focus and the line where they were.
  const plots = () => {
    let at = null, focused = "";
    const all = () => $$(".plots .plot");
    const readable = (v) => v.split("/").map((n) => Number(n) >= 1000 && Number(n) < 1e9 ? Number(n).toLocaleString("en") : n.replaceAll("-", "\u2212")).join("/");
    const clear = () => {
      at = null;
      for (const p of all()) { $(".cross", p).setAttribute("visibility", "hidden"); if (p.rest) { $("output", p).replaceChildren(...p.rest); p.rest = null; } }
    };
    const time = (f, n, days) => {
      const min = Math.floor(f * n) / n * 1440 * (days ? days.length : 1), two = (k) => String(Math.floor(k)).padStart(2, "0");
      return (days ? days[Math.floor(min / 1440)] + " " : "") + two((min % 1440) / 60) + ":" + two(min % 60);
    };
    const show = (f) => {
      at = f;
      for (const p of all()) {
        const s = $("svg[data-v]", p), out = $("output", p), c = $(".cross", s), days = p.parentElement.dataset.days;
        const v = s.vals || (s.vals = s.dataset.v.split(",")), n = v.length, i = Math.floor(f * n), x = ((i + 0.5) / n) * s.viewBox.baseVal.width;
        c.setAttribute("x1", x); c.setAttribute("x2", x); c.setAttribute("visibility", "visible");
        if (!p.rest) p.rest = [...out.childNodes];
        const b = document.createElement("b");
        b.textContent = v[i] === "" ? "no data" : readable(v[i]);
        out.replaceChildren(time(f, n, days ? days.split(",") : null) + "  ", b, v[i] === "" ? "" : " " + s.dataset.unit);
      }
    };
    document.addEventListener("pointermove", (e) => {
      const p = e.target.closest && e.target.closest(".plots .plot"), s = p && $("svg[data-v]", p), r = s && s.getBoundingClientRect();
      const f = r ? (e.clientX - r.left) / r.width : -1;
      if (f >= 0 && f < 1) show(f); else if (at !== null && !focused) clear();
    });
    document.addEventListener("focusin", (e) => {
      const p = e.target.closest(".plots .plot");
      if (!p && focused) clear();
      focused = p ? p.id : "";
    });
    document.addEventListener("keydown", (e) => {
      const d = { ArrowLeft: -1, ArrowRight: 1 }[e.key], p = e.target.closest(".plots .plot");
      if (!p || !d && e.key !== "Escape") return;
      e.preventDefault();
      if (!d) return clear();
      const n = $("svg[data-v]", p).dataset.v.split(",").length;
      show(Math.min(n - 0.5, Math.max(0.5, (at === null ? Math.floor(n / 2) : Math.floor(at * n) + d) + 0.5)) / n);
    });
    if ($("#user-data")) new MutationObserver(() => {
      const p = focused && document.getElementById(focused);
      if (p && !p.contains(document.activeElement)) p.focus({ preventScroll: true });
      if (at !== null && all().some((x) => !x.rest)) show(at);
    }).observe($("#main"), { childList: true, subtree: true });
  };

  // live changes: the server sends the HTML of an element, and where it belongs. Hidden tabs do not hold a connection
  let source, topics, since, heard = 0, lost = 0, hidden, retry;
  const connect = (t, at) => {
    const old = source;
    topics = t;
    since = at;
    clearTimeout(retry);
    if (!window.EventSource || topics === undefined) return;
    source = new EventSource("/console/live?" + new URLSearchParams({ topics, since }));
    const here = source;
    const on = (name, f) => here.addEventListener(name, (e) => {
      if (here !== source) return;
      heard = Date.now();
      if (e.lastEventId) since = e.lastEventId;
      f(e);
    });
    on("ready", () => running(true));
    on("alive", () => {});
    on("full", () => here.close());
    on("reload", reload);
    on("message", (e) => change(JSON.parse(e.data)));
    here.onerror = () => {
      if (here !== source) return;
      running(false);
      const closed = here.readyState === EventSource.CLOSED, w = $("#waiting"); // an error response: it runs, with another token
      if (w) w.textContent = closed ? "It is back: open the address that it printed" : "Waiting until it is back";
      if (closed) retry = setTimeout(() => connect(topics, since), 3000);
    };
    if (old) old.close();
  };
  const running = (is) => {
    const s = $("#running");
    if (!s) return;
    if (is) lost = 0; else lost = lost || Date.now();
    s.classList.toggle("off", !is);
    s.textContent = is ? "Running" : "Stopped";
    const page = $("#stopped");
    if (page && is) { page.hidden = true; $("#content").hidden = false; }
  };
  const stopped = () => {
    const page = $("#stopped");
    if (!page || !lost || Date.now() - lost < 4000 || !page.hidden || page.dataset.seen) return;
    $("time", page).textContent = new Date(lost).toTimeString().slice(0, 8);
    page.hidden = false;
    $("#content").hidden = true;
    tell("stopped");
  };
  // at most one reload in 5 s, and none of a page that the user writes on
  const reload = () => {
    if ($$("textarea, input:not([type=hidden])").some((i) => i.value !== i.defaultValue)) return;
    const last = +sessionStorage.getItem("reloaded") || 0, wait = last + 5000 - Date.now();
    if (wait > 0) { clearTimeout(retry); retry = setTimeout(reload, wait); return; }
    sessionStorage.setItem("reloaded", Date.now());
    location.reload();
  };
  setInterval(() => {
    if (source && heard && !hidden && Date.now() - heard > 40000) { heard = Date.now(); connect(topics, since); } // a connection that is lost without an error
    stopped();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) { hidden = setTimeout(() => { if (source) source.close(); source = null; }, 10000); return; }
    hidden = 0;
    ages();
    if (!source && topics !== undefined) connect(topics, since);
  });

  // rows that arrive wait behind a pill while the list is paused or scrolled, so that nothing moves
  let paused = false;
  const held = new Map();
  const scroller = (list) => { const box = list.closest(".list") || list; return box.scrollHeight > box.clientHeight + 1 && getComputedStyle(box).overflowY !== "visible" ? box : document.scrollingElement; };
  const pill = () => { const p = $("[data-act=new]"); if (p) { p.hidden = held.size === 0; $(".n", p).textContent = held.size; } };
  const release = () => {
    const list = $("[data-rows]"), changes = [...held.values()];
    held.clear();
    if (list) scroller(list).scrollTop = 0;
    changes.forEach((c) => put(c));
    pill();
  };
  const pause = (button) => {
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    $(".t", button).textContent = paused ? "Resume" : "Pause";
    const l = $("#live");
    if (l) { l.textContent = paused ? "Paused" : "Live"; l.classList.toggle("off", paused); }
    if (!paused) release();
    tell(paused ? "paused" : "live");
  };
  const change = (c) => {
    const list = c.into && document.getElementById(c.into);
    if (list && list.dataset.rows !== undefined && !document.getElementById(c.id) && c.html && (paused || scroller(list).scrollTop > 8)) {
      held.set(c.id, c);
      return pill();
    }
    put(c);
  };
  // ages grow while the page is open, by the clock of the server
  let skew = 0;
  const age = (s) => s < 60 ? Math.max(0, s) + " s" : s < 3600 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
  const ages = () => {
    if (document.hidden) return;
    const now = Math.floor(Date.now() / 1000) - skew;
    for (const e of $$("time[data-since]")) { const text = age(now - e.dataset.since); if (e.textContent !== text) e.textContent = text; }
  };
  setInterval(ages, 10000);
  const put = ({ id, html, into, say: text }) => {
    const old = document.getElementById(id), parent = into && document.getElementById(into);
    if (text && (old || parent)) say(text);
    if (!html) { if (old) old.remove(); return; }
    const t = document.createElement("template");
    t.innerHTML = html; // from a template of the server
    const el = t.content.firstElementChild;
    if (old && (!parent || old.parentElement === parent)) swap(old, el);
    else {
      if (old) old.remove();
      if (parent) insert(parent, el);
    }
    [el, ...$$(".fresh", el)].forEach(fade);
    returnHere(el);
    const f = $("[data-filter]");
    if (f && f.value && el.dataset.item !== undefined) filter(f, true);
  };
  // forms return to the page as it is: the server does not know in which view it puts a live change, what was typed, or what was opened
  const returnHere = (el) => {
    const at = new URL(location.href), f = $("[data-filter]");
    if (f && f.value) at.searchParams.set(f.name, f.value); else if (f) at.searchParams.delete(f.name);
    $$("input[name=back]", el).forEach((i) => { i.value = at.pathname + at.search; });
  };
  // what is new stands out for ten seconds
  const fade = (el) => { if (el.classList.contains("fresh")) setTimeout(() => el.classList.remove("fresh"), 10000); };
  // the new element keeps what the user did with the old one
  const swap = (old, el) => {
    const focus = old.contains(document.activeElement) && [old, ...$$("a, button, input, summary, [tabindex]", old)].indexOf(document.activeElement);
    for (const c of ["on", "at"]) if (old.classList.contains(c)) el.classList.add(c);
    const open = $$("details", old).map((d) => d.open);
    old.replaceWith(el);
    $$("details", el).forEach((d, i) => { d.open = !!open[i]; });
    if (focus === false) return;
    const to = [el, ...$$("a, button, input, summary, [tabindex]", el)][focus];
    if (to) to.focus({ preventScroll: true });
  };
  // rows with a number are sorted by it, the greatest first; other elements come first
  const insert = (parent, el) => {
    const n = +el.dataset.n, after = n ? [...parent.children].find((x) => +x.dataset.n < n) : parent.firstElementChild;
    if (n && !after && parent.children.length && parent.dataset.all === undefined) return; // older than those shown
    parent.insertBefore(el, after || null);
    for (const most = +(parent.dataset.rows || parent.dataset.most); most && parent.children.length > most;) {
      let old = parent.lastElementChild;
      if (old.classList.contains("on")) old = old.previousElementSibling; // it is open
      old.remove();
      delete parent.dataset.all;
    }
    const none = $("[data-none]");
    if (none) none.hidden = true;
  };

  // Copy as curl: the response to the form is copied instead of shown
  const copyResponse = async (form) => {
    const b = $("button", form);
    try {
      await navigator.clipboard.writeText(await fetched(fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) })));
      b.classList.add("done");
      tell("copied");
      setTimeout(() => b.classList.remove("done"), 1200);
    } catch { form.submit(); }
  };

  const act = {
    new: release,
    pause,
    close: (b, e) => { const f = b.closest(".flash"); if (f) { f.remove(); e.preventDefault(); } },
    back: (b) => { const page = $("#stopped"); page.dataset.seen = "1"; page.hidden = true; $("#content").hidden = false; },
  };
  const copy = (c) => {
    const from = c.dataset.copy.startsWith("#") ? $(c.dataset.copy) : null;
    const done = () => { c.classList.add("done"); tell("copied"); setTimeout(() => c.classList.remove("done"), 1200); };
    if (navigator.clipboard) navigator.clipboard.writeText(from ? from.innerText : c.dataset.copy).then(done, () => tell("could not copy"));
  };

  document.addEventListener("click", (e) => {
    if (!e.target.closest("details.menu")) $$("details.menu[open]").forEach((d) => { d.open = false; });
    const c = e.target.closest("[data-copy]"), a = e.target.closest("a[href]"), b = e.target.closest("[data-act]");
    if (c) return copy(c);
    if (b && act[b.dataset.act]) return act[b.dataset.act](b, e);
    if (!a || !a.closest("[data-pane]") || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    open(a.href, true);
  });
  document.addEventListener("submit", (e) => {
    returnHere(e.target);
    if (e.target.dataset.copyResponse === undefined || !navigator.clipboard) return;
    e.preventDefault();
    copyResponse(e.target);
  });
  document.addEventListener("input", (e) => {
    const i = e.target;
    if (i.dataset.filter) filter(i);
    if (i.type === "range") { const o = $("output[for=" + i.id + "]"); if (o) o.textContent = i.value + (i.dataset.unit || ""); }
  });
  window.addEventListener("popstate", () => { if ($("[data-pane]")) open(location.href); });
  document.addEventListener("scroll", (e) => {
    const list = $("[data-rows]");
    if (list && held.size && !paused && e.target.nodeType && scroller(list).scrollTop === 0) release();
  }, true);

  document.addEventListener("DOMContentLoaded", () => {
    const on = $(".list .on");
    if (on) on.scrollIntoView({ block: "nearest" });
    $$(".fresh").forEach(fade);
    skew = Math.floor(Date.now() / 1000) - document.body.dataset.now;
    plots();
    connect(document.body.dataset.live, document.body.dataset.since);
  });
})();
