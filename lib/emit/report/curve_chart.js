// Memory against time: the plans of this page, keeping everything, and the curves over other budgets.

const CURVE = {width: 900, height: 340, left: 70, right: 36, top: 18, bottom: 46};
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
  }

  point(plan, [bytes, cost]) {
    return {bytes, share: plan.columns.step_cost > 0 ? cost / plan.columns.step_cost : 0};
  }

  x(bytes) { return CURVE.left + bytes / this.mostBytes * (CURVE.width - CURVE.left - CURVE.right); }
  y(share) {
    const height = CURVE.height - CURVE.top - CURVE.bottom;
    return CURVE.height - CURVE.bottom - (share - this.leastShare) / (this.mostShare - this.leastShare) * height;
  }

  elements() {
    const notes = this.curves.filter((curve) => curve.failure).map((curve) => element("p", {}, `No curve by ${curve.name}: ${curve.failure}`));
    const help = this.curves.length > 0
      ? "Each mark of a line is a plan: more memory always costs less time. What lies above a line can be bettered by a plan on it."
      : "The page was written without a curve; ckplan report computes one.";
    return [this.drawing(), this.legend(), ...notes, element("p", {class: "quiet help"}, help), this.table()];
  }

  drawing() {
    const svg = svgElement("svg", {class: "curve", viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, role: "img",
      "aria-label": "Time added to a step, by the peak of activations; the table below has the numbers"});
    this.drawAxes(svg);
    this.curves.forEach((curve, i) => this.drawCurve(svg, curve, i));
    this.marks.forEach((mark) => this.drawMark(svg, mark));
    return element("div", {class: "curve-scroll"}, svg);
  }

  drawAxes(svg) {
    const right = CURVE.width - CURVE.right;
    const bottom = CURVE.height - CURVE.bottom;
    let tick = 1;
    while (this.mostBytes / tick > 8) tick *= 2;
    for (let bytes = 0; bytes <= this.mostBytes; bytes += tick) {
      svg.append(svgElement("path", {class: "grid", d: `M${this.x(bytes)} ${CURVE.top}V${bottom}`}),
        svgElement("text", {x: this.x(bytes), y: bottom + 17, "text-anchor": "middle"}, bytesText(bytes)));
    }
    const stride = roundStride(1000 * (this.mostShare - this.leastShare), 6) / 1000;
    for (let share = Math.ceil(this.leastShare / stride) * stride; share <= this.mostShare; share += stride) {
      svg.append(svgElement("path", {class: "grid", d: `M${CURVE.left} ${this.y(share)}H${right}`}),
        svgElement("text", {x: CURVE.left - 7, y: this.y(share) + 4, "text-anchor": "end"}, signedPercent(share)));
    }
    svg.append(svgElement("text", {x: right, y: bottom + 36, "text-anchor": "end"}, "peak of activations"),
      svgElement("text", {x: CURVE.left + 6, y: CURVE.top + 8, "text-anchor": "start"}, "time added to a step"));
  }

  drawCurve(svg, curve, number) {
    if (curve.points.length === 0) return;
    let path = "";
    for (const point of curve.points) {
      path += path ? `H${this.x(point.bytes)}V${this.y(point.share)}` : `M${this.x(point.bytes)} ${this.y(point.share)}`;
    }
    svg.append(svgElement("path", {class: `line line-${number % 4}`, d: `${path}H${CURVE.width - CURVE.right}`}));
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
      group.append(svgElement("path", {d: "M-5 -5L5 5M-5 5L5 -5"}), svgElement("text", {class: "aside", y: -10, "text-anchor": "end"}, mark.name));
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

function svgSample(style, path) {
  const svg = svgElement("svg", {width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true"});
  svg.append(svgElement("path", {class: style, d: path}));
  return svg;
}
