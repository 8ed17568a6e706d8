"use strict";
// Curves that can be switched and hovered; the data stands in the element before each figure.
for (const box of document.querySelectorAll(".curves")) {
  const data = JSON.parse(box.querySelector("script").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NS = "http://www.w3.org/2000/svg";
  const state = { quantity: Object.keys(data.quantities)[0], axis: Object.keys(data.axes)[0], hidden: new Set() };
  const plot = box.querySelector(".plot"), tip = box.querySelector(".tip"), bar = box.querySelector(".switches");
  const node = (name, attributes, parent, text) => {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  };
  const say = (x) => {
    if (x === 0) return "0";
    const size = Math.abs(x);
    return size >= 0.01 && size < 1e5 ? String(+x.toPrecision(3)) : x.toExponential(size < 1e-2 ? 0 : 1);
  };
  const choose = (kind, names) => {
    if (Object.keys(names).length < 2) return;
    const group = bar.appendChild(document.createElement("span"));
    for (const name in names) {
      const button = group.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = names[name];
      button.setAttribute("aria-pressed", String(state[kind] === name));
      button.onclick = () => {
        state[kind] = name;
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
        draw();
      };
    }
  };
  choose("quantity", data.quantities);
  choose("axis", data.axes);
  const legend = bar.appendChild(document.createElement("span"));
  const colour = (method) => (dark.matches ? method.dark : method.light);
  for (const method of data.methods) {
    const button = legend.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "method";
    button.setAttribute("aria-pressed", "true");
    const chip = node("svg", { width: 22, height: 8, "aria-hidden": "true" }, button);
    node("line", { x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 3, "stroke-dasharray": method.dash }, chip);
    button.append(" " + method.name);
    button.onclick = () => {
      state.hidden[state.hidden.has(method) ? "delete" : "add"](method);
      button.setAttribute("aria-pressed", String(!state.hidden.has(method)));
      draw();
    };
  }
  const ticks = (low, high, log, most) => {
    const found = [];
    if (log) {
      const every = Math.max(1, Math.ceil((high - low) / most));
      for (let k = Math.ceil(low); k <= high; k += every) found.push(k);
      return found.length > 1 ? found : [low, high];
    }
    const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw));
    const every = unit * [1, 2, 5, 10].find((m) => m * unit >= raw);
    for (let x = Math.ceil(low / every) * every; x <= high + 1e-9 * every; x += every) found.push(x);
    return found;
  };
  let points = [];
  function draw() {
    const width = Math.max(plot.clientWidth, 240), height = Math.min(360, Math.max(240, width * 0.5));
    const left = 58, right = 12, top = 10, bottom = 40;
    plot.replaceChildren();
    tip.hidden = true;
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" }, plot);
    svg.setAttribute("aria-label", `${data.quantities[state.quantity]} against ${data.axes[state.axis]}`);
    points = [];
    for (const method of data.methods)
      method.runs.forEach((run, seed) => {
        run[state.quantity].forEach((y, i) => {
          if (y !== null) points.push({ method, seed, i, x: run[state.axis][i], y, step: run.step[i] });
        });
      });
    if (!points.length) return;
    const logY = points.every((p) => p.y > 0);
    const ends = data.methods.flatMap((m) => m.runs.map((r) => r.step[r.step.length - 1]));
    const logX = state.axis === "step" && Math.max(...ends) > 10 * Math.min(...ends);
    const fx = logX ? Math.log10 : (x) => x, fy = logY ? Math.log10 : (y) => y;
    const shown = points.filter((p) => !state.hidden.has(p.method));
    const over = (f, key) => (shown.length ? shown : points).reduce(
      ([a, b], p) => [Math.min(a, f(p[key])), Math.max(b, f(p[key]))], [Infinity, -Infinity]);
    let [x0, x1] = over(fx, "x"), [y0, y1] = over(fy, "y");
    if (!logX) x0 = 0;
    if (x1 <= x0) x1 = x0 + 1;
    const margin = 0.05 * (y1 - y0) || 1;
    y0 -= margin;
    y1 += margin;
    const px = (x) => left + ((fx(x) - x0) / (x1 - x0)) * (width - left - right);
    const py = (y) => height - bottom - ((fy(y) - y0) / (y1 - y0)) * (height - top - bottom);
    if (data.band && state.quantity === "energy") {
      const edge = logY ? Math.max(Math.min(py(data.band), height - bottom), top) : py(data.band);
      node("rect", { class: "band", x: left, y: edge, width: width - left - right, height: height - bottom - edge }, svg);
    }
    for (const k of ticks(y0, y1, logY, 6)) {
      const y = py(logY ? 10 ** k : k);
      node("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }, svg);
      node("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, svg, say(logY ? 10 ** k : k));
    }
    for (const k of ticks(x0, x1, logX, width < 500 ? 4 : 8)) {
      const x = px(logX ? 10 ** k : k);
      node("line", { class: "grid", x1: x, x2: x, y1: top, y2: height - bottom }, svg);
      node("text", { x, y: height - bottom + 16, "text-anchor": "middle" }, svg, say(logX ? 10 ** k : k));
    }
    node("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, svg, data.axes[state.axis]);
    for (const [i, method] of data.methods.entries()) {
      legend.children[i].querySelector("line").setAttribute("stroke", colour(method));
      if (state.hidden.has(method)) continue;
      method.runs.forEach((run, seed) => {
        const own = shown.filter((p) => p.method === method && p.seed === seed);
        const look = { class: "line", stroke: colour(method), opacity: seed ? 0.45 : 1 };
        const cuts = state.axis === "step" ? [] : run.gaps;
        let piece = [];
        const flush = () => node("polyline", { ...look, points: piece.join(" "), "stroke-dasharray": method.dash }, svg);
        for (const [n, p] of own.entries()) {
          if (n && cuts.some((cut) => own[n - 1].i < cut && cut <= p.i)) {
            flush();
            piece = [];
            const y = py(own[n - 1].y);
            node("line", { ...look, class: "gap", x1: px(own[n - 1].x), x2: px(p.x), y1: y, y2: y }, svg);
          }
          piece.push(`${px(p.x).toFixed(1)},${py(p.y).toFixed(1)}`);
        }
        flush();
      });
    }
    const mark = node("circle", { r: 4, class: "mark", visibility: "hidden" }, svg);
    svg.onpointermove = svg.onpointerdown = (event) => {
      const at = svg.getBoundingClientRect();
      const x = (event.clientX - at.left) * (width / at.width), y = (event.clientY - at.top) * (height / at.height);
      let best = null, nearest = 1600;
      for (const p of shown) {
        const distance = (px(p.x) - x) ** 2 + (py(p.y) - y) ** 2;
        if (distance < nearest) [best, nearest] = [p, distance];
      }
      tip.hidden = !best;
      mark.setAttribute("visibility", best ? "visible" : "hidden");
      if (!best) return;
      mark.setAttribute("cx", px(best.x));
      mark.setAttribute("cy", py(best.y));
      mark.setAttribute("fill", colour(best.method));
      const many = best.method.runs.length > 1 ? `, run ${best.seed + 1}` : "";
      tip.textContent = `${best.method.name}${many}: ${best.y.toPrecision(3)} at step ${best.step}` +
        (state.axis === "step" ? "" : `, ${say(best.x)} ${data.axes[state.axis]}`);
    };
    svg.onpointerleave = () => {
      tip.hidden = true;
      mark.setAttribute("visibility", "hidden");
    };
  }
  dark.addEventListener("change", draw);
  addEventListener("resize", draw);
  draw();
}
