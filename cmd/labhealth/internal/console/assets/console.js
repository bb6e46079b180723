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

  // load fetches a page and changes what differs from the open one. What the user does is kept: the focus, what is typed, opened, paused or
  // selected, and the place of a list. Elements with data-own belong to the script; those with data-asked show what the user has asked for once.
  let loads = 0, opening = 0;
  const load = async (href, live) => {
    const n = live ? loads : ++loads, response = await fetch(href, { headers: live ? { "Console-Live": "1" } : {} });
    if (!(response.headers.get("Content-Type") || "").startsWith("text/html")) throw new Error(response.status);
    const page = new DOMParser().parseFromString(await response.text(), "text/html"); // runs no script
    if (n !== loads) return;
    if (page.getElementById("content")) {
      if ([...page.scripts].some((s, i) => s.src !== document.scripts[i].src)) return location.reload(); // another version
      for (const name of ["live", "self", "now"]) document.body.dataset[name] = page.body.dataset[name];
      document.title = page.title;
      morph($("#content"), page.getElementById("content"), live);
    }
    Idiomorph.morph($("#nav"), page.getElementById("nav"), { callbacks: { beforeAttributeUpdated: (name) => name !== "aria-current" } });
    return true;
  };
  // open follows a link within [data-pane], so that the list stays where it is
  const open = async (href, push) => {
    opening++;
    try {
      if (await load(href)) {
        if (push) history.pushState(null, "", href);
        const d = $("#detail");
        if (d) d.scrollTop = 0;
      }
    } catch { location.assign(href); }
    opening--;
    update();
  };
  const fetched = async (response) => {
    const r = await response;
    if (!r.ok) throw new Error(r.status);
    return r.text();
  };
  const edited = (e) => e.matches("input, textarea") ? e.value !== e.defaultValue || e.checked !== e.defaultChecked
    : e.matches("select") ? e.selectedIndex !== Math.max(0, [...e.options].findIndex((o) => o.defaultSelected))
      : e.matches("output[for]") && $$("#" + e.htmlFor).some(edited);
  const morph = (old, page, live) => {
    const list = $("[data-rows]"), hold = list && !(live && released) && (paused || scroller(list).scrollTop > 8), at = $(".at[id]"), news = [];
    held = 0;
    if (live) released = false;
    Idiomorph.morph(old, page, { ignoreActiveValue: true, callbacks: {
      // new rows wait behind a pill while the list is paused or scrolled, so that nothing moves
      beforeNodeAdded: (e) => !(hold && isRow(e) && ++held),
      beforeNodeRemoved: (e) => !(hold && isRow(e)),
      afterNodeAdded: (e) => { if (e.matches && e.matches("[data-item]")) news.push(e); },
      beforeNodeMorphed: (e) => e.nodeType !== 1 || !(e.dataset.own !== undefined || live && e.dataset.asked !== undefined || edited(e)),
      beforeAttributeUpdated: (name, e) => {
        if (name === "data-item") news.push(e);
        return !(name === "open" && e.matches("details") || name === "hidden" && e.matches("[data-item]"));
      },
    } });
    if (at) { const e = document.getElementById(at.id); if (e) e.classList.add("at"); }
    $$(".fresh").forEach(fade);
    news.forEach((e) => say(e.textContent.replace(/\s+/g, " ").trim().slice(0, 120)));
    const f = $("[data-filter]");
    if (f && f.value) filter(f, true);
    plots();
    const p = $("[data-act=new]");
    if (p) { p.hidden = !held; $(".n", p).textContent = held + (held && held === $$("[data-rows] > *", page).length ? "+" : ""); }
    ages();
  };
  const isRow = (e) => e.parentElement && e.parentElement.matches("[data-rows]");

  // plots: uPlot draws what data-plot has. One cross-hair goes through all of them, dragging chooses a part of the time for all, and a
  // double click or escape shows all of it again.
  const plots = (() => {
    const drawn = new Map(); // by the section
    let at = null, zoom = null, part = "", focused = "";
    const probe = document.createElement("i");
    const color = (name) => { probe.style.color = "var(--" + name + ")"; return getComputedStyle(probe).color; };
    const faint = (c, alpha) => c.replace("rgb(", "rgba(").replace(")", ", " + alpha + ")");
    const two = (n) => String(n).padStart(2, "0");
    const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const clock = (x, withDay) => { const t = new Date(x * 1000); return (withDay ? days[t.getUTCDay()] + " " : "") + two(t.getUTCHours()) + ":" + two(t.getUTCMinutes()); };
    const readable = (v) => v.toLocaleString("en", { maximumFractionDigits: 9 }).replace("-", "\u2212");
    const read = (p, x) => {
      const { d, u, section } = p, out = $("output", section), rest = $(".rest", section), b = document.createElement("b");
      rest.hidden = x !== null;
      if (x === null) return out.replaceChildren();
      const i = u.valToIdx(x), near = Math.abs(u.data[0][i] - x) <= Math.max(d.step, d.usual) && !(d.gaps || []).some(([from, to]) => x >= from && x < to);
      const values = (d.bars ? [1] : d.y.map((_, n) => n + 1).filter((n) => n % 3 === 1)).map((n) => u.data[n][i]), has = near && values.every((v) => v !== null);
      b.textContent = has ? values.map(readable).join("/") : "no data";
      out.replaceChildren(clock(x - d.step / 2, d.to - d.from > 90000) + "  ", b, has ? " " + section.dataset.unit : "");
    };
    const show = (x) => {
      at = x;
      for (const p of drawn.values()) {
        p.u.setCursor(x === null ? { left: -10, top: -10 } : { left: p.u.valToPos(x, "x"), top: 0 }, false);
        read(p, x);
      }
    };
    const setZoom = (range) => { zoom = range; for (const { d, u } of drawn.values()) u.setScale("x", { min: range ? range[0] : d.from, max: range ? range[1] : d.to }); show(at); };
    const options = (section, d, isLast) => {
      const ink = () => color("ink-3"), line = () => color("line"), accent = () => color("accent"), font = "11px system-ui, sans-serif";
      const area = (u, from, to, fill) => { const a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true); u.ctx.fillStyle = fill; u.ctx.fillRect(a, u.bbox.top, b - a, u.bbox.height); };
      const edge = (u, x, dash, stroke) => { const c = u.ctx, at = Math.round(u.valToPos(x, "x", true)) + 0.5; c.strokeStyle = stroke; c.setLineDash(dash); c.beginPath(); c.moveTo(at, u.bbox.top); c.lineTo(at, u.bbox.top + u.bbox.height); c.stroke(); };
      const hatch = (u) => {
        const tile = Object.assign(document.createElement("canvas"), { width: 8, height: 8 }), c = tile.getContext("2d");
        c.strokeStyle = faint(color("ctl"), 0.55);
        c.beginPath(); c.moveTo(0, 8); c.lineTo(8, 0); c.stroke();
        return u.ctx.createPattern(tile, "repeat");
      };
      const within = (u, draw) => { const c = u.ctx, b = u.bbox; c.save(); c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip(); draw(); c.restore(); };
      const behind = (u) => within(u, () => {
        if (d.target) { const [a, b] = d.target.map((v) => u.valToPos(v, "y", true)); u.ctx.fillStyle = color("hover"); u.ctx.fillRect(u.bbox.left, b, u.bbox.width, a - b); }
        for (const [from, to] of d.gaps || []) { area(u, from, to, hatch(u)); edge(u, from, [2, 2], color("ctl")); edge(u, to, [2, 2], color("ctl")); }
      });
      const range = (u, low, high) => {
        if (low === null) return [0, 1];
        for (const v of d.bars ? [0] : d.target || []) { low = Math.min(low, v); high = Math.max(high, v); }
        const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
        if (high - low < size * 1e-9) { low -= size / 20; high += size / 20; }
        return uPlot.rangeNum(low, high, { min: { pad: 0.05, soft: 0, mode: d.bars ? 1 : 3 }, max: { pad: 0.05, soft: 0, mode: d.bars ? 1 : 3 } });
      };
      const alone = (u, n) => u.data[n].flatMap((v, i, all) => v !== null && (all[i - 1] ?? null) === null && (all[i + 1] ?? null) === null ? [i] : []);
      const side = { stroke: null, width: 0, points: { show: false } };
      const mean = { stroke: accent, width: 1.5, points: { filter: alone, size: 5, fill: accent, width: 0 } };
      const bars = { stroke: null, width: 0, fill: () => faint(accent(), 0.78), paths: uPlot.paths.bars({ size: [0.72, 100] }), points: { show: false } };
      const lines = d.y.length / 3;
      return {
        ...size(section, isLast), padding: [6, 0, isLast ? 0 : 6, 0], legend: { show: false }, tzDate: (t) => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
        scales: { x: { time: true, auto: false, min: (zoom || [d.from])[0], max: (zoom || [0, d.to])[1] }, y: { range } },
        series: [{}, ...(d.bars ? [bars] : Array.from({ length: lines }, () => [mean, side, side]).flat())],
        bands: d.bars ? [] : Array.from({ length: lines }, (_, n) => ({ series: [3 * n + 3, 3 * n + 2], fill: () => faint(accent(), 0.16) })),
        axes: [
          { show: isLast, stroke: ink, font, size: 26, gap: 4, align: 1, grid: { show: false }, ticks: { show: false }, incrs: [300, 900, 1800, 3600, 10800, 21600, 86400],
            values: (u, all, axis, space, step) => all.map((x) => x >= u.scales.x.max ? "" : step < 86400 ? clock(x) : days[new Date(x * 1000).getUTCDay()] + " " + new Date(x * 1000).getUTCDate()) },
          { side: 1, stroke: ink, font, size: 42, gap: 4, space: 26, grid: { stroke: line, width: 1 }, ticks: { show: false },
            values: (u, all) => all.map((v) => Math.abs(v) < 1e-3 && v ? v.toExponential(1) : v.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 6 }).replace("K", "k").replace("-", "\u2212")) },
        ],
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => setZoom(null) } },
        hooks: {
          drawClear: [behind],
          draw: [(u) => { if (d.now) within(u, () => edge(u, d.now, [2, 3], ink())); }],
          setSelect: [(u) => {
            const { left, width } = u.select;
            if (width > 4) setZoom([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }],
        },
      };
    };
    const size = (section, isLast) => ({ width: Math.max(100, $(".chart", section).clientWidth), height: (section.classList.contains("short") ? 88 : 132) + (isLast ? 20 : 0) });
    const draw = () => {
      const sections = $$(".plot[data-plot^='{']"), all = sections.map((s) => s.dataset.plot).join("");
      if (all === part && [...drawn.keys()].every((s) => s.isConnected)) return;
      part = all;
      document.body.append(probe);
      for (const p of drawn.values()) p.u.destroy();
      drawn.clear();
      sections.forEach((section, i) => {
        const d = JSON.parse(section.dataset.plot);
        if (zoom && (zoom[0] < d.from || zoom[1] > d.to)) zoom = null; // another day
        const u = new uPlot(options(section, d, i === sections.length - 1), [d.x, ...d.y], $(".chart", section));
        drawn.set(section, { d, u, section });
        u.over.addEventListener("pointermove", (e) => { const x = u.posToVal(e.offsetX, "x"); show(d.from + Math.floor((x - d.from) / d.step) * d.step + d.step / 2); });
        u.over.addEventListener("pointerleave", () => { if (!focused) show(null); });
      });
      show(at);
    };
    document.addEventListener("focusin", (e) => {
      const p = e.target.closest(".plots .plot");
      if (!p && focused) show(null);
      focused = p ? p.id : "";
    });
    document.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key], p = e.target.closest && drawn.get(e.target.closest(".plots .plot"));
      if (!p || !by && e.key !== "Escape") return;
      e.preventDefault();
      if (!by) { setZoom(null); return show(null); }
      const { from, to, step } = p.d, middle = Math.floor((to - from) / step / 2), slot = at === null ? middle : Math.floor((at - from) / step) + by;
      show(from + (Math.min((to - from) / step - 1, Math.max(0, slot)) + 0.5) * step);
    });
    const again = () => { part = ""; draw(); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    let resized;
    window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { if (drawn.size) again(); }, 100); });
    return draw;
  })();

  // live changes: the server says which topics have changed, and the page loads itself, or only the counts of the navigation. It takes at
  // most half of the time. Hidden tabs do not hold a connection.
  let source, since, heard = 0, lost = 0, hidden, retry, wanted = "", updating = false;
  const update = async () => {
    if (updating || opening || !wanted || lost || document.hidden) return;
    const started = performance.now(), what = wanted;
    let pause = 100;
    wanted = "";
    updating = true;
    try { await load(what === "page" ? document.body.dataset.self : "/console/nav", true); } catch { wanted = what; pause = 1000; }
    setTimeout(() => { updating = false; update(); }, Math.max(pause, performance.now() - started));
  };
  const changed = (topics) => {
    const own = document.body.dataset.live.split(" ");
    if (topics.some((t) => t === "all" || own.includes(t))) wanted = "page"; else wanted ||= "nav";
    update();
  };
  const connect = (at) => {
    const old = source;
    since = at;
    clearTimeout(retry);
    if (!window.EventSource || since === undefined) return;
    source = new EventSource("/console/live?" + new URLSearchParams({ since }));
    const here = source;
    const on = (name, f) => here.addEventListener(name, (e) => {
      if (here !== source) return;
      heard = Date.now();
      if (e.lastEventId) since = e.lastEventId;
      f(e);
    });
    on("ready", () => { running(true); update(); });
    on("alive", () => {});
    on("changed", (e) => changed(e.data.split(" ")));
    here.onerror = () => {
      if (here !== source) return;
      running(false);
      const closed = here.readyState === EventSource.CLOSED, w = $("#waiting"); // an error response: it runs, with another token
      if (w) w.textContent = closed ? "It is back: open the address that it printed" : "Waiting until it is back";
      if (closed) retry = setTimeout(() => connect(since), 3000);
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
  setInterval(() => {
    if (source && heard && !hidden && Date.now() - heard > 40000) { heard = Date.now(); connect(since); } // a connection that is lost without an error
    stopped();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) { hidden = setTimeout(() => { if (source) source.close(); source = null; }, 10000); return; }
    hidden = 0;
    ages();
    if (!source) connect(since);
    update();
  });

  let paused = false, held = 0, released = false;
  const scroller = (list) => { const box = list.closest(".list") || list; return box.scrollHeight > box.clientHeight + 1 && getComputedStyle(box).overflowY !== "visible" ? box : document.scrollingElement; };
  const release = () => {
    const list = $("[data-rows]");
    if (list) scroller(list).scrollTop = 0;
    released = true;
    changed(["all"]);
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
  // ages grow while the page is open, by the clock of the server
  let skew = 0;
  const age = (s) => s < 60 ? Math.max(0, s) + " s" : s < 3600 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
  const ages = () => {
    if (document.hidden) return;
    const now = Math.floor(Date.now() / 1000) - skew;
    for (const e of $$("time[data-since]")) { const text = age(now - e.dataset.since); if (e.textContent !== text) e.textContent = text; }
  };
  setInterval(ages, 10000);
  // forms return to the page as it is: the server does not know what was typed or opened
  const returnHere = (form) => {
    const at = new URL(location.href), f = $("[data-filter]");
    if (f && f.value) at.searchParams.set(f.name, f.value); else if (f) at.searchParams.delete(f.name);
    $$("input[name=back]", form).forEach((i) => { i.value = at.pathname + at.search; });
  };
  // what is new stands out for ten seconds
  const fade = (el) => { if (el.classList.contains("fresh")) setTimeout(() => el.classList.remove("fresh"), 10000); };
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
    if (list && held && !paused && e.target.nodeType && scroller(list).scrollTop === 0) release();
  }, true);

  document.addEventListener("DOMContentLoaded", () => {
    const on = $(".list .on");
    if (on) on.scrollIntoView({ block: "nearest" });
    $$(".fresh").forEach(fade);
    skew = Math.floor(Date.now() / 1000) - document.body.dataset.now;
    plots();
    connect(document.body.dataset.since);
  });
})();
