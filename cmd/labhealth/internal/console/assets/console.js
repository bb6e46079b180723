// Everything here is an addition: each page reads and works without it. Loaded in <head>, so that the theme is set before paint.
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  const $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];
  const say = (text) => { const s = $("#say"); if (s) s.textContent = text; };

  // filter: <input data-filter="#rows"> hides the items of #rows that lack one of the words
  const filter = (input) => {
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
    $$("[data-lane]").forEach((l) => { const c = $(".n", l); if (c) c.textContent = $$("[data-item]:not([hidden])", l).length; });
    say(n + " of " + items.length);
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
    const a = $("a", items[i]);
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
      if (typing) { e.target.value = ""; if (e.target.dataset.filter) filter(e.target); return e.target.blur(); }
      if (location.hash && $(".back")) { history.replaceState(null, "", "#"); location.hash = ""; select(); }
      return;
    }
    if (typing || e.metaKey || e.ctrlKey || e.altKey) return;
    if (Date.now() - g < 900 && pages[e.key]) { location.href = "/console/" + pages[e.key]; return; }
    g = e.key === "g" ? Date.now() : 0;
    const own = /^[a-z]$/.test(e.key) && ($(".at [data-key=" + e.key + "]") || $$("[data-key=" + e.key + "]").find((x) => x.offsetParent));
    if (e.key === "j" || e.key === "k") move(e.key === "j" ? 1 : -1);
    else if (e.key === "/") { const f = $("[data-filter]"); if (f) { f.focus(); f.select(); } }
    else if (e.key === "?") help();
    else if (e.key === "t") theme();
    else if (own) own.click();
    else return;
    e.preventDefault();
  });

  // the row whose detail is shown
  const select = () => {
    const rows = $$("[data-detail]");
    if (!rows.length) return;
    const on = rows.find((r) => "#" + r.dataset.detail === location.hash) || rows.find((r) => r.dataset.first !== undefined);
    rows.forEach((r) => { r.classList.toggle("on", r === on); const a = $("a", r); if (r === on) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current"); });
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

  // live changes: the server sends the HTML of an element, and where it belongs
  const live = () => {
    const topics = document.body.dataset.live;
    if (!topics || !window.EventSource) return;
    const running = $("#running"), source = new EventSource("/console/live?topics=" + encodeURIComponent(topics));
    let lost = false;
    source.onopen = () => { if (lost) location.reload(); running.classList.remove("off"); running.textContent = "Running"; };
    source.onerror = () => { lost = true; running.classList.add("off"); running.textContent = "Stopped"; };
    source.addEventListener("reload", () => location.reload());
    source.onmessage = (e) => change(JSON.parse(e.data));
  };
  const change = ({ id, html, into, say: text }) => {
    const old = document.getElementById(id), parent = into && document.getElementById(into);
    if (text) say(text);
    if (!html) { if (old) old.remove(); return; }
    const t = document.createElement("template");
    t.innerHTML = html;
    const el = t.content.firstElementChild;
    if (old && (!parent || old.parentElement === parent)) old.replaceWith(el);
    else { if (old) old.remove(); if (parent) parent.prepend(el); }
  };

  document.addEventListener("DOMContentLoaded", () => {
    $$("[data-filter]").forEach((i) => i.addEventListener("input", () => filter(i)));
    document.addEventListener("click", (e) => {
      const c = e.target.closest("[data-copy]");
      if (!e.target.closest("details.menu")) $$("details.menu[open]").forEach((d) => { d.open = false; });
      if (!c) return;
      const from = c.dataset.copy.startsWith("#") ? $(c.dataset.copy) : null;
      const done = () => { c.classList.add("done"); say("copied"); setTimeout(() => c.classList.remove("done"), 1200); };
      if (navigator.clipboard) navigator.clipboard.writeText(from ? from.innerText : c.dataset.copy).then(done, () => say("could not copy"));
    });
    $$("input[type=range]").forEach((r) => r.addEventListener("input", () => { const o = $("output[for=" + r.id + "]"); if (o) o.textContent = r.value + (r.dataset.unit || ""); }));
    window.addEventListener("hashchange", select);
    select();
    plots();
    live();
  });
})();
