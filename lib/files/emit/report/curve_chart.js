// Memory against time: the plans of this page, keeping everything, and the curves over other budgets.

// In pixels of the screen, so that texts have their size at any width.
const CURVE = {most: 1100, left: 58, right: 30, top: 26, bottom: 44};
const MARKS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z", "M0 -5l5 5l-5 5l-5 -5z"];

class CurveChart {
  constructor(plans, curves) {
    this.plans = plans;
    this.curves = curves.map((curve) => ({...curve, points: pairs(curve.points).map((pair) => this.point(plans[curve.plan], pair))}));
    for (const plan of plans) {
      const found = pairs(plan.columns.found);
      if (found.length === 0 || this.curves.some((curve) => curve.plan === plan.number && curve.points.length > 0)) continue;
      this.curves.push({name: `what ${plan.title} was chosen from`, plan: plan.number, failure: "", points: found.map((pair) => this.point(plan, pair))});
    }
    this.marks = [];
    const keepAll = new Set();
    for (const plan of plans) {
      this.marks.push({label: plan.letter, name: plan.title, bytes: plan.peak, share: plan.addedShare});
      if (keepAll.has(plan.columns.graph)) continue;
      keepAll.add(plan.columns.graph);
      this.marks.push({label: "", name: "keep all", bytes: plan.columns.keep_all_peak, share: 0});
    }
    const all = [...this.marks, ...this.curves.flatMap((curve) => curve.points)];
    this.mostBytes = Math.max(...all.map((point) => point.bytes), 1) * 1.04;
    this.mostShare = Math.max(...all.map((point) => point.share), 0.01) * 1.06;
    this.leastShare = Math.min(...all.map((point) => point.share), 0);
    this.box = element("div", {class: "curve-box"});
  }

  point(plan, [bytes, cost]) {
    return {bytes, share: plan.columns.step_cost > 0 ? cost / plan.columns.step_cost : 0};
  }

  get right() { return this.width - CURVE.right; }
  get bottom() { return this.height - CURVE.bottom; }
  x(bytes) { return round(CURVE.left + bytes / this.mostBytes * (this.right - CURVE.left)); }
  y(share) { return round(this.bottom - (share - this.leastShare) / (this.mostShare - this.leastShare) * (this.bottom - CURVE.top)); }

  elements() {
    const notes = this.curves.filter((curve) => curve.failure).map((curve) => element("p", {}, `No curve by ${curve.name}: ${curve.failure}`));
    const help = this.curves.length > 0
      ? "Each mark of a line is a plan: more memory always costs less time. What lies above a line can be bettered by a plan on it."
      : "The page was written without a curve; ckplan report computes one.";
    return [this.box, this.legend(), ...notes, element("p", {class: "quiet help"}, help), this.table()];
  }

  // Draws the picture as wide as its box is.
  draw() {
    const width = Math.min(this.box.clientWidth, CURVE.most);
    if (width === this.width || width === 0) return;
    this.width = width;
    this.height = Math.max(Math.round(0.34 * width), 250);
    const svg = svgElement("svg", {class: "curve", width, height: this.height, viewBox: `0 0 ${width} ${this.height}`, role: "img",
      "aria-label": "Time added to a step, by the peak of activations; the table below has the numbers"});
    this.drawAxes(svg);
    this.curves.forEach((curve, i) => this.drawCurve(svg, curve, i));
    this.marks.forEach((mark) => this.drawMark(svg, mark));
    this.box.replaceChildren(svg);
  }

  drawAxes(svg) {
    const {right, bottom} = this;
    const tick = bytesStride(this.mostBytes, Math.max((right - CURVE.left) / 75, 2));
    for (let bytes = 0; bytes <= this.mostBytes; bytes += tick) {
      svg.append(svgElement("path", {class: "grid", d: `M${this.x(bytes)} ${CURVE.top}V${bottom}`}),
        svgElement("text", {x: this.x(bytes), y: bottom + 17, "text-anchor": "middle"}, roundBytesText(bytes)));
    }
    // In tenths of a per cent, for which whole numbers are round.
    const stride = roundStride(1000 * (this.mostShare - this.leastShare), 6);
    for (let at = Math.ceil(1000 * this.leastShare / stride); at * stride <= 1000 * this.mostShare; ++at) {
      const share = at * stride / 1000;
      svg.append(svgElement("path", {class: "grid", d: `M${CURVE.left} ${this.y(share)}H${right}`}),
        svgElement("text", {x: CURVE.left - 7, y: this.y(share) + 4, "text-anchor": "end"}, roundPercent(share)));
    }
    svg.append(svgElement("text", {x: right, y: bottom + 36, "text-anchor": "end"}, "peak of activations"),
      svgElement("text", {x: 2, y: 13, "text-anchor": "start"}, "time added to a step"));
  }

  drawCurve(svg, curve, number) {
    if (curve.points.length === 0) return;
    let path = "";
    for (const point of curve.points) {
      path += path ? `H${this.x(point.bytes)}V${this.y(point.share)}` : `M${this.x(point.bytes)} ${this.y(point.share)}`;
    }
    svg.append(svgElement("path", {class: `line line-${number % 4}`, d: `${path}H${this.right}`}));
    for (const point of curve.points) {
      svg.append(svgElement("path", {class: `point line-${number % 4}`, d: MARKS[number % 4], transform: `translate(${this.x(point.bytes)} ${this.y(point.share)})`},
        svgElement("title", {}, `${curve.name}: ${bytesText(point.bytes)}, ${signedPercent(point.share)}`)));
    }
  }

  drawMark(svg, mark) {
    const group = svgElement("g", {class: "plan-mark", transform: `translate(${this.x(mark.bytes)} ${this.y(mark.share)})`},
      svgElement("title", {}, `${mark.name}: ${bytesText(mark.bytes)}, ${signedPercent(mark.share)}`));
    if (mark.label) {
      group.append(svgElement("circle", {r: 10}), svgElement("text", {y: 4, "text-anchor": "middle"}, mark.label));
    } else {
      group.append(svgElement("path", {d: "M-5 -5L5 5M-5 5L5 -5"}), svgElement("text", {class: "aside", y: -11, "text-anchor": "end"}, mark.name));
    }
    svg.append(group);
  }

  legend() {
    const lines = this.curves.filter((curve) => curve.points.length > 0).map((curve) => {
      const number = this.curves.indexOf(curve);
      return element("span", {class: "item"}, svgSample(`point line-${number % 4}`, MARKS[number % 4]), curve.name);
    });
    const plans = this.plans.map((plan) => element("span", {class: "item"}, element("span", {class: "letter"}, plan.letter), plan.columns.name));
    return element("div", {class: "legend"}, ...plans, ...lines);
  }

  table() {
    const row = (name, point) => element("tr", {}, element("th", {scope: "row", class: "name"}, name), element("td", {class: "number"}, bytesText(point.bytes)),
      element("td", {class: "number"}, signedPercent(point.share)));
    const rows = [...this.marks.map((mark) => row(mark.name, mark)), ...this.curves.flatMap((curve) => curve.points.map((point) => row(curve.name, point)))];
    return element("details", {}, element("summary", {}, "The numbers"), element("table", {class: "compact"},
      element("thead", {}, headRow([["Plan or curve"], ["Peak", "number"], ["Added time", "number"]])), element("tbody", {}, ...rows)));
  }
}

function pairs(flat) {
  return Array.from({length: flat.length / 2}, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

// Rounds a coordinate to tenths of a pixel.
function round(coordinate) {
  return Math.round(10 * coordinate) / 10;
}

function svgSample(style, path) {
  const svg = svgElement("svg", {width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true"});
  svg.append(svgElement("path", {class: style, d: path}));
  return svg;
}
