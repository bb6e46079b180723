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
    $$("[data-lane]").forEach((l) => { const c = $(".n", l); if (!c) return; c.dataset.n ??= c.textContent; c.textContent = words.length ? $$("[data-item]:not([hidden])", l).length : c.dataset.n; });
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

  // plots: one line through all of them; the values are read from data-v, one for each slot, empty in a gap
  const plots = () => {
    for (const box of $$(".plots")) {
      const clear = () => $$("svg[data-v]", box).forEach((s) => { $(".cross", s).setAttribute("visibility", "hidden"); const r = s.closest(".plot"); $("output", r).innerHTML = r.dataset.rest; });
      $$(".plot", box).forEach((p) => { p.dataset.rest = $("output", p).innerHTML; });
      const show = (f) => $$("svg[data-v]", box).forEach((s) => {
        if (!s.getClientRects().length) return;
        const v = s.vals || (s.vals = s.dataset.v.split(",")), n = v.length, i = Math.min(n - 1, Math.max(0, Math.floor(f * n)));
        const c = $(".cross", s), x = ((i + 0.5) / n) * s.viewBox.baseVal.width;
        c.setAttribute("x1", x); c.setAttribute("x2", x); c.setAttribute("visibility", "visible");
        const min = (i / n) * (s.dataset.span === "week" ? 10080 : 1440), two = (k) => String(Math.floor(k)).padStart(2, "0");
        const at = (s.dataset.span === "week" ? "Sat Sun Mon Tue Wed Thu Fri".split(" ")[Math.floor(min / 1440)] + " " : "") + two((min % 1440) / 60) + ":" + two(min % 60);
        const out = $("output", s.closest(".plot"));
        out.textContent = at + "  ";
        const b = document.createElement("b");
        b.textContent = v[i] === "" ? "no data" : v[i];
        out.append(b, v[i] === "" ? "" : " " + s.dataset.unit);
      });
      box.addEventListener("pointermove", (e) => {
        const s = e.target.closest(".plot") && $$("svg[data-v]", e.target.closest(".plot")).find((x) => x.getClientRects().length);
        if (!s) return;
        const r = s.getBoundingClientRect();
        box.f = (e.clientX - r.left) / r.width;
        if (box.f < 0 || box.f > 1) clear(); else show(box.f);
      });
      box.addEventListener("pointerleave", clear);
      box.addEventListener("keydown", (e) => {
        const d = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
        if (!d || e.target.tagName === "INPUT") return;
        e.preventDefault();
        show(box.f = Math.min(0.999, Math.max(0, (box.f ?? 0.5) + d / 288)));
      });
    }
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
    if (el.classList.contains("fresh")) setTimeout(() => el.classList.remove("fresh"), 10000);
    const f = $("[data-filter]");
    if (f && f.value && el.dataset.item !== undefined) filter(f);
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
    $$(".fresh").forEach((e) => setTimeout(() => e.classList.remove("fresh"), 10000));
    window.addEventListener("hashchange", select);
    select();
    plots();
    live();
  });
})();
