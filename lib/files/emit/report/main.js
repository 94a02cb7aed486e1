// The page: the state that its parts share, and how they notify each other.

class Page {
  constructor(data) {
    this.data = data;
    this.plans = data.plans.map((columns, i) => new PlanData(columns, data.graphs[columns.graph], i));
    this.shown = this.plans.slice(0, 2);
    this.view = {from: 0, to: 1};
    this.axis = "steps";
    this.showsConstants = false;
    this.selected = "";
    this.chosen = {};  // The chosen step, by the plan's number.
    this.table = new TensorTable(this);
  }

  open() {
    this.writeHead();
    document.getElementById("summary").append(...summaryOf(this.plans));
    this.curve = new CurveChart(this.plans, this.data.curves);
    document.getElementById("curve-body").append(...this.curve.elements());
    this.writeLinks();
    document.getElementById("tensors-body").append(...this.table.elements());
    this.writeControls();
    this.showPlans();
    new ResizeObserver(() => this.resize()).observe(document.getElementById("memory-panels"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawCharts());
    document.getElementById("theme").addEventListener("click", () => this.switchTheme());
  }

  // Shows the section of copies only if a plan moves values.
  writeLinks() {
    const heading = LinkLanes.heading(this.plans);
    if (!heading) return;
    const section = element("section", {id: "links", "aria-labelledby": "links-title"}, element("h2", {id: "links-title"}, heading),
      element("div", {class: "panels"}, ...this.plans.map((plan) => new LinkLanes(plan).figure(this.plans.length > 1))));
    document.getElementById("live").before(section);
  }

  writeHead() {
    const models = [...new Set(this.plans.map((plan) => plan.columns.model))];
    const graph = this.plans[0].graph;
    document.getElementById("title").append(...breakable(models.join(" and ")));
    document.getElementById("subtitle").textContent = `ckplan ${this.data.version} · ${graph.nodes.length} ` +
      `${graph.joint ? "operations" : "nodes"} · ${this.plans.length === 1 ? "one plan" : `${this.plans.length} plans`}`;
  }

  // ---- Views ----

  writeControls() {
    const button = (text, label, act) => element("button", {type: "button", "aria-label": label, onclick: act}, text);
    const axis = element("select", {id: "axis", onchange: () => { this.axis = axis.value; this.drawCharts(); }},
      element("option", {value: "steps"}, "steps"), element("option", {value: "time"}, "time"));
    const constants = element("input", {type: "checkbox", id: "constants", onchange: () => { this.showsConstants = constants.checked; this.drawCharts(); }});
    document.getElementById("memory-controls").append(
      element("label", {for: "axis"}, "Along ", axis),
      element("label", {for: "constants"}, constants, " with constants"),
      element("span", {class: "group"}, button("+", "Zoom in", () => this.zoomAround(this.middle, 0.5)), button("−", "Zoom out", () => this.zoomAround(this.middle, 2)),
        button("◀", "Earlier", () => this.moveBy(-(this.view.to - this.view.from) / 4)), button("▶", "Later", () => this.moveBy((this.view.to - this.view.from) / 4)),
        button("All", "See all steps", () => this.zoomTo(0, 1)), button("Peak", "Zoom to the peak", () => this.zoomToPeak())),
      ...this.plans.length > 2 ? this.planChoices() : []);
    this.writeLegend();
  }

  planChoices() {
    return [0, 1].map((side) => {
      const choice = element("select", {"aria-label": `Plan on the ${side === 0 ? "left" : "right"}`, onchange: () => {
        this.shown[side] = this.plans[Number(choice.value)];
        this.showPlans();
      }}, ...this.plans.map((plan, i) => element("option", {value: i, selected: i === side}, plan.title)));
      return choice;
    });
  }

  writeLegend() {
    const items = KINDS.map((style, kind) => [this.plans.find((plan) => plan.kindsUsed[kind])?.kindName(kind), `swatch ${style}`]).filter(([name]) => name);
    if (this.plans.some((plan) => plan.others > 0)) items.push(["other micro-batches", "swatch other-micro-batches"]);
    items.push(["keeping all", "swatch keep-all"]);
    if (this.plans.some((plan) => plan.columns.budget !== null)) items.push(["budget", "swatch budget-line"]);
    items.push(["peak", "swatch peak-mark"]);
    const phases = [["forward", "phase-f"], ["run again", "phase-r"], ["backward", "phase-b"]].map(([name, style]) => [name, `swatch ${style}`]);
    const item = ([name, style]) => element("span", {class: "item"}, element("span", {class: style}), name);
    const row = (title, list) => element("span", {class: "legend-row"}, element("span", {class: "quiet"}, title), ...list.map(item));
    document.getElementById("memory-legend").append(row("memory", items), row("schedule", phases));
  }

  showPlans() {
    this.charts = this.shown.map((plan) => new MemoryChart(plan, this));
    this.lives = this.shown.map((plan) => new LivePanel(plan, this));
    document.getElementById("memory-panels").replaceChildren(...this.charts.map((chart) => chart.figure));
    document.getElementById("live-panels").replaceChildren(...this.lives.map((live) => live.body));
    for (const live of this.lives) live.draw();
    this.table.fill();
    this.table.drawDetails();
    this.drawCharts();
  }

  // Redraws what depends on the width of the page, when that has changed.
  resize() {
    this.drawCharts();
    const width = document.documentElement.clientWidth;
    if (width === this.width) return;
    this.width = width;
    this.curve.draw();
    for (const live of this.lives) live.draw();
    this.table.drawRows();
  }

  drawCharts() {
    // All plans have one scale, so that heights compare. A budget far above would flatten the others.
    let highest = Math.max(1, ...this.shown.map((plan) => Math.max(plan.peak, plan.columns.keep_all_peak)));
    for (const plan of this.shown) {
      if (plan.columns.budget !== null && plan.columns.budget <= 2 * highest) highest = Math.max(highest, plan.columns.budget);
    }
    const constants = this.showsConstants ? Math.max(...this.shown.map((plan) => plan.columns.constants)) : 0;
    this.highest = (highest + constants) * 1.04;
    for (const chart of this.charts) chart.draw();
  }

  switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    this.drawCharts();
  }

  // ---- Zoom, as fractions of the whole, for all plans at once ----

  get middle() { return (this.view.from + this.view.to) / 2; }

  // The smallest visible fraction: four steps of the longest plan.
  get leastView() { return Math.min(4 / Math.max(...this.shown.map((plan) => plan.stepCount), 4), 1); }

  zoomTo(from, to) {
    const width = Math.min(Math.max(to - from, this.leastView), 1);
    const start = Math.min(Math.max((from + to - width) / 2, 0), 1 - width);
    this.view = {from: start, to: start + width};
    this.drawCharts();
  }

  zoomAround(fraction, factor) {
    const {from, to} = this.view;
    const width = Math.min(Math.max((to - from) * factor, this.leastView), 1);
    const start = Math.min(Math.max(fraction - (fraction - from) * width / (to - from), 0), 1 - width);
    this.view = {from: start, to: start + width};
    this.drawCharts();
  }

  moveBy(fraction) {
    const width = this.view.to - this.view.from;
    const start = Math.min(Math.max(this.view.from + fraction, 0), 1 - width);
    this.view = {from: start, to: start + width};
    this.drawCharts();
  }

  reveal(fraction) {
    const {from, to} = this.view;
    if (fraction < from) this.moveBy(fraction - from - (to - from) / 10);
    if (fraction > to) this.moveBy(fraction - to + (to - from) / 10);
  }

  zoomToPeak() {
    const chart = this.charts[0];
    if (chart.plan.stepCount === 0) return;
    const at = chart.fractionOf(chart.plan.peakStep);
    const width = Math.max(this.leastView, 40 / chart.plan.stepCount);
    this.zoomTo(at - width / 2, at + width / 2);
  }

  // ---- Pointing, choosing, selecting ----

  cursorMoved(chart, step) {
    for (const other of this.charts) {
      if (other === chart) other.draw();
      else other.follow(step < 0 ? -1 : other.plan.stepLike(chart.plan, step));
    }
  }

  // A step of -1 chooses the peak.
  choose(plan, step) {
    if (step < 0) delete this.chosen[plan.number];
    else this.chosen[plan.number] = step;
    for (const live of this.lives) if (live.plan === plan) live.draw();
    this.drawCharts();
  }

  select(name) {
    this.selected = name;
    this.table.drawRows();
    this.table.drawDetails();
    this.drawCharts();
  }
}

new Page(JSON.parse(document.getElementById("data").textContent)).open();
document.documentElement.dataset.state = "ready";
