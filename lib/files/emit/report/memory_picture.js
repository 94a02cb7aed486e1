// Draws a plan's memory over time, the selected tensor, and the schedule, one above the other on one canvas.
//
//   memory    by kind, stacked; in the background, what keeping everything uses for the same work
//   tensor    when the selected tensor is in memory, and which steps read it
//   schedule  a mark for each step: its time, and the position of its node in the graph's order

const MARGIN = {left: 76, right: 12, top: 26, bottom: 34};
const LANE_HEIGHT = 18;
const STRIP_HEIGHT = 110;
const GAP = 8;

class MemoryPicture {
  constructor(canvas, plan, page) {
    Object.assign(this, {canvas, plan, page});
    this.context = canvas.getContext("2d");
  }

  // The x values at which steps begin, in steps or in units of cost.
  get begins() { return this.page.axis === "time" ? this.plan.timeBegin : this.steps; }
  get steps() {
    if (!this.stepNumbers) this.stepNumbers = Float64Array.from({length: this.plan.stepCount + 1}, (_, k) => k);
    return this.stepNumbers;
  }
  get extent() { return this.begins[this.plan.stepCount] || 1; }
  get plotWidth() { return Math.max(this.width - MARGIN.left - MARGIN.right, 10); }
  get laneTop() { return this.height - MARGIN.bottom - STRIP_HEIGHT - GAP - LANE_HEIGHT; }
  get stripTop() { return this.height - MARGIN.bottom - STRIP_HEIGHT; }
  get plotBottom() { return this.laneTop - GAP; }

  xOf(value) {
    const {from, to} = this.page.view;
    return MARGIN.left + (value / this.extent - from) / (to - from) * this.plotWidth;
  }

  fractionAt(x) {
    const {from, to} = this.page.view;
    return from + (to - from) * Math.min(Math.max((x - MARGIN.left) / this.plotWidth, 0), 1);
  }

  stepAt(fraction) {
    const step = lastAtMost(this.begins, fraction * this.extent);
    return Math.min(Math.max(step, 0), this.plan.stepCount - 1);
  }

  middleOf(step) { return this.xOf((this.begins[step] + this.begins[step + 1]) / 2); }

  yOf(bytes) {
    return this.plotBottom - bytes / this.page.highest * (this.plotBottom - MARGIN.top);
  }

  // `cursor` and `chosen` are steps, or -1; `zone` is the range that the pointer has dragged over, or null.
  draw({cursor, chosen, zone}) {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.readColours();
    this.findColumns();
    this.drawGrid();
    this.clipped(() => {
      this.drawKeepAll();
      this.drawKinds();
      this.drawBudget();
      this.drawLane();
      this.drawStrip();
      this.drawLossAndPeak();
      if (zone) this.drawZone(zone);
      if (chosen >= 0) this.drawLine(chosen, this.colour("ink"), []);
      if (cursor >= 0) this.drawLine(cursor, this.colour("ink"), [3, 3]);
    });
    this.drawLabels();
  }

  readColours() {
    this.styles = getComputedStyle(document.documentElement);
    const key = this.styles.getPropertyValue("--ink");
    if (this.coloursOf === key) return;
    this.coloursOf = key;
    this.patterns = KINDS.map((kind) => this.patternOf(kind));
  }

  colour(name) { return this.styles.getPropertyValue(`--${name}`).trim(); }

  // Kinds differ not only by colour but also by pattern: lines in either direction, dots, or none.
  patternOf(kind) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const context = tile.getContext("2d");
    context.fillStyle = this.colour(kind);
    context.fillRect(0, 0, 8, 8);
    context.strokeStyle = context.fillStyle = this.colour("pattern");
    context.lineWidth = 1;
    context.beginPath();
    if (kind === "recomputed") {
      for (const at of [-8, 0, 8]) { context.moveTo(at, 8); context.lineTo(at + 8, 0); }
    } else if (kind === "gradients") {
      for (const at of [-8, 0, 8]) { context.moveTo(at, 0); context.lineTo(at + 8, 8); }
    } else if (kind === "passing") {
      context.fillRect(1, 1, 2, 2);
      context.fillRect(5, 5, 2, 2);
    } else if (kind === "workspace") {
      context.moveTo(0, 4);
      context.lineTo(8, 4);
    } else if (kind === "loaded") {
      context.moveTo(4, 0);
      context.lineTo(4, 8);
    }
    context.stroke();
    return this.context.createPattern(tile, "repeat");
  }

  clipped(draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(MARGIN.left, 0, this.plotWidth, this.height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  // Finds for each pixel the step in it that needs the most memory, for any number of steps per pixel.
  findColumns() {
    const {from, to} = this.page.view;
    const count = Math.max(Math.ceil(this.plotWidth), 1);
    this.columns = new Int32Array(count).fill(-1);
    if (this.plan.stepCount === 0) return;
    const valueAt = (column) => (from + (to - from) * column / count) * this.extent;
    let step = Math.max(lastAtMost(this.begins, valueAt(0)), 0);
    for (let column = 0; column < count; ++column) {
      const end = valueAt(column + 1);
      let highest = Math.min(step, this.plan.stepCount - 1);
      while (step + 1 < this.plan.stepCount && this.begins[step + 1] < end) {
        ++step;
        if (this.plan.total[step] > this.plan.total[highest]) highest = step;
      }
      this.columns[column] = highest;
    }
  }

  // Returns the outline of a size over the columns, as a step function.
  outline(sizeOf) {
    const path = new Path2D();
    let last = null;
    this.columns.forEach((step, column) => {
      const y = step < 0 ? this.yOf(0) : this.yOf(sizeOf(step));
      if (last === null) path.moveTo(MARGIN.left, y);
      else if (y !== last) {
        path.lineTo(MARGIN.left + column, last);
        path.lineTo(MARGIN.left + column, y);
      }
      last = y;
    });
    path.lineTo(MARGIN.left + this.columns.length, last);
    return path;
  }

  fillBelow(path, style) {
    const area = new Path2D(path);
    area.lineTo(MARGIN.left + this.columns.length, this.plotBottom);
    area.lineTo(MARGIN.left, this.plotBottom);
    area.closePath();
    this.context.fillStyle = style;
    this.context.fill(area);
  }

  stroke(path, style, width, dashes = []) {
    this.context.strokeStyle = style;
    this.context.lineWidth = width;
    this.context.setLineDash(dashes);
    this.context.stroke(path);
    this.context.setLineDash([]);
  }

  // Below the memory of the steps lie the constants and, in a pipeline stage, what other micro-batches have saved.
  get constants() { return this.page.showsConstants ? this.plan.columns.constants : 0; }
  get base() { return this.constants + this.plan.others; }

  drawKeepAll() {
    const path = this.outline((step) => this.constants + this.plan.keepAllOthers + this.plan.columns.keep_all[step]);
    this.fillBelow(path, this.colour("keep-all-area"));
    this.stroke(path, this.colour("keep-all"), 1.25, [1, 2]);
  }

  // The areas overlap, so the sum of all kinds is drawn first.
  drawKinds() {
    for (let kind = KINDS.length; kind-- > 0;) {
      if (!this.plan.kindsUsed[kind]) continue;
      const path = this.outline((step) => {
        let sum = this.base;
        for (let below = 0; below <= kind; ++below) sum += this.plan.memory[below][step];
        return sum;
      });
      this.fillBelow(path, this.patterns[kind]);
    }
    if (this.plan.others > 0) this.fillBelow(this.outline(() => this.base), this.colour("other-micro-batches"));
    if (this.constants > 0) this.fillBelow(this.outline(() => this.constants), this.colour("constants"));
    this.stroke(this.outline((step) => this.base + this.plan.total[step]), this.colour("ink"), 1);
  }

  drawBudget() {
    const budget = this.plan.columns.budget;
    if (budget === null) return;
    const y = this.yOf(this.constants + budget);
    const line = new Path2D();
    line.moveTo(MARGIN.left, y);
    line.lineTo(this.width, y);
    this.stroke(line, this.colour("paper"), 3);
    this.stroke(line, this.colour("budget"), 1.75, [8, 4]);
  }

  drawLane() {
    const context = this.context;
    context.fillStyle = this.colour("lane");
    context.fillRect(MARGIN.left, this.laneTop, this.plotWidth, LANE_HEIGHT);
    const tensor = this.page.selected ? this.plan.graph.tensors.indexOf(this.page.selected) : -1;
    if (tensor < 0) return;
    for (const span of this.plan.spansOfTensors[tensor]) {
      const [first, last] = this.plan.spanSteps(span);
      const left = this.xOf(this.begins[first]);
      const right = this.xOf(this.begins[last + 1]);
      context.fillStyle = this.colour(KINDS[this.plan.spanKind(span)]);
      context.fillRect(left, this.laneTop + 3, Math.max(right - left, 2), LANE_HEIGHT - 6);
      context.strokeStyle = this.colour("ink");
      context.lineWidth = 1;
      context.strokeRect(left, this.laneTop + 3, Math.max(right - left, 2), LANE_HEIGHT - 6);
      context.fillStyle = this.colour("ink");
      for (const read of this.plan.spanReads(span)) {
        context.fillRect(this.middleOf(read) - 1, this.laneTop, 2, LANE_HEIGHT);
      }
    }
  }

  drawStrip() {
    const context = this.context;
    context.fillStyle = this.colour("lane");
    context.fillRect(MARGIN.left, this.stripTop, this.plotWidth, STRIP_HEIGHT);
    const {phases, step_of: nodes} = this.plan.columns;
    const first = this.stepAt(this.page.view.from);
    const last = this.stepAt(this.page.view.to);
    const count = Math.max(this.plan.graph.nodes.length, 1);
    const height = Math.max(STRIP_HEIGHT / count, 2.5);
    for (const phase of ["f", "b", "r", "l"]) {  // Rare phases are drawn above frequent ones.
      context.fillStyle = this.colour(`phase-${phase}`);
      for (let k = first; k <= last; ++k) {
        if (phases[k] !== phase) continue;
        const left = this.xOf(this.begins[k]);
        const width = Math.max(this.xOf(this.begins[k + 1]) - left, 2);
        if (phase === "l") {
          context.fillRect(left, this.stripTop, width, STRIP_HEIGHT);
        } else {
          const y = this.stripTop + (STRIP_HEIGHT - height) * (1 - nodes[k] / Math.max(count - 1, 1));
          context.fillRect(left, y, width, height);
        }
      }
    }
  }

  drawLossAndPeak() {
    const boundary = this.plan.boundary;
    if (boundary >= 0) this.drawLine(boundary, this.colour("quiet"), [2, 4], this.plotBottom);
    if (this.plan.stepCount === 0) return;
    const context = this.context;
    context.beginPath();
    context.arc(this.middleOf(this.plan.peakStep), this.yOf(this.constants + this.plan.peak), 5, 0, 2 * Math.PI);
    context.fillStyle = this.colour("paper");
    context.fill();
    context.strokeStyle = this.colour("ink");
    context.lineWidth = 2;
    context.stroke();
  }

  drawLine(step, style, dashes, bottom = this.height - MARGIN.bottom) {
    const line = new Path2D();
    line.moveTo(this.middleOf(step), MARGIN.top);
    line.lineTo(this.middleOf(step), bottom);
    this.stroke(line, style, 1.25, dashes);
  }

  drawZone([from, to]) {
    this.context.fillStyle = this.colour("zone");
    this.context.fillRect(Math.min(from, to), MARGIN.top, Math.abs(to - from), this.height - MARGIN.top - MARGIN.bottom);
  }

  text(text, x, y, align, style = "ink") {
    this.context.textAlign = align;
    this.context.fillStyle = this.colour(style);
    this.context.fillText(text, x, y);
  }

  drawGrid() {
    this.context.font = "12px system-ui, sans-serif";
    this.context.textBaseline = "middle";
    // Ticks are powers of two, so that no label is rounded.
    const tick = bytesStride(this.page.highest, 6);
    for (let bytes = 0; bytes <= this.page.highest; bytes += tick) {
      const y = this.yOf(bytes);
      const line = new Path2D();
      line.moveTo(MARGIN.left, y);
      line.lineTo(this.width - MARGIN.right, y);
      this.stroke(line, this.colour("grid"), 1);
      this.text(roundBytesText(bytes), MARGIN.left - 6, y, "right", "quiet");
    }
  }

  // Labels the budget, the peak and the two passes, and numbers the steps.
  drawLabels() {
    this.context.font = "12px system-ui, sans-serif";
    this.context.textBaseline = "middle";
    const {from, to} = this.page.view;
    const byTime = this.page.axis === "time";
    const stride = roundStride((to - from) * this.extent, Math.max(Math.floor(this.plotWidth / 90), 2));
    for (let at = Math.ceil(from * this.extent / stride) * stride; at <= to * this.extent; at += stride) {
      const label = byTime ? costText(at, this.plan.columns.cost_unit) : String(at);
      this.text(label, Math.min(this.xOf(at), this.width - 16), this.height - MARGIN.bottom + 11, "center", "quiet");
    }
    const axis = byTime ? "time, by the cost model" : "step of the schedule";
    this.text(axis, MARGIN.left + this.plotWidth / 2, this.height - 8, "center", "quiet");
    this.text("tensor", MARGIN.left - 6, this.laneTop + LANE_HEIGHT / 2, "right", "quiet");
    this.text("schedule", MARGIN.left - 6, this.stripTop + STRIP_HEIGHT / 2, "right", "quiet");
    if (!this.page.selected) {
      const isNarrow = this.plotWidth < 330;
      this.text(isNarrow ? "choose a tensor in the lists below" : "choose a tensor below to see when it is in memory", MARGIN.left + 6, this.laneTop + LANE_HEIGHT / 2, "left", "quiet");
    }
    this.labelBoundary();
  }

  labelBoundary() {
    const boundary = this.plan.boundary;
    if (boundary < 0) return;
    const x = this.middleOf(boundary);
    if (x > MARGIN.left + 56 && x < this.width - 60) {
      this.text("forward", x - 6, MARGIN.top - 12, "right", "quiet");
      this.text("backward", x + 6, MARGIN.top - 12, "left", "quiet");
    }
  }
}
