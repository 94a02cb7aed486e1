// A plan's memory picture with its interaction: pointing, choosing and zooming, by pointer or by keyboard.
class MemoryChart {
  constructor(plan, page) {
    Object.assign(this, {plan, page});
    this.cursor = -1;
    this.drag = null;
    this.canvas = element("canvas", {
      tabindex: 0, role: "img", class: "memory",
      "aria-label": this.description(),
      onpointermove: (event) => this.point(event),
      onpointerdown: (event) => this.press(event),
      onpointerup: (event) => this.release(event),
      onpointerleave: () => this.leave(),
      onpointercancel: () => { this.drag = null; this.leave(); },
      ondblclick: () => page.zoomTo(0, 1),
      onwheel: (event) => this.wheel(event),
      onkeydown: (event) => this.key(event),
      onblur: () => this.setCursor(-1),
    });
    this.tip = element("div", {class: "tip", hidden: true, "aria-hidden": "true"});
    this.picture = new MemoryPicture(this.canvas, plan, page);
    this.figure = element("figure", {class: "panel"},
      page.shown.length > 1 ? element("figcaption", {}, plan.title) : null,
      element("div", {class: "drawing"}, this.canvas, this.tip));
  }

  description() {
    const {plan} = this;
    if (plan.stepCount === 0) return `${plan.title}: a plan without steps`;
    return `Memory of plan ${plan.title} over ${plan.stepCount} steps: peak ${bytesText(plan.peak)} at step ` +
      `${plan.peakStep}, ${plan.stepName(plan.peakStep)}; keeping everything needs ${bytesText(plan.columns.keep_all_peak)}. ` +
      "Arrow keys go through the steps.";
  }

  draw() {
    const zone = this.drag && this.drag.moved ? [this.drag.from, this.drag.to] : null;
    this.picture.draw({cursor: this.cursor, chosen: this.page.chosen[this.plan.number] ?? -1, zone});
    this.showTip();
  }

  // ---- The pointer ----

  xOf(event) { return event.clientX - this.canvas.getBoundingClientRect().left; }

  point(event) {
    const x = this.xOf(event);
    if (this.drag) {
      this.drag.to = x;
      this.drag.moved = this.drag.moved || Math.abs(x - this.drag.from) > 5;
    }
    this.setCursor(this.plan.stepCount > 0 ? this.picture.stepAt(this.picture.fractionAt(x)) : -1);
  }

  press(event) {
    if (event.button !== 0) return;
    if (event.pointerType === "mouse") this.canvas.setPointerCapture(event.pointerId);
    this.drag = {from: this.xOf(event), to: this.xOf(event), moved: false};
  }

  release() {
    const drag = this.drag;
    this.drag = null;
    if (!drag || this.plan.stepCount === 0) return;
    const [from, to] = [drag.from, drag.to].sort((a, b) => a - b).map((x) => this.picture.fractionAt(x));
    if (drag.moved) this.page.zoomTo(from, to);
    else this.choose(this.picture.stepAt(from));
  }

  leave() {
    if (!this.drag) this.setCursor(-1);
  }

  // A plain wheel scrolls the page; with Ctrl it zooms, sideways it pans.
  wheel(event) {
    const {from, to} = this.page.view;
    if (event.ctrlKey) {
      event.preventDefault();
      this.page.zoomAround(this.picture.fractionAt(this.xOf(event)), event.deltaY > 0 ? 1.25 : 0.8);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const by = (event.deltaX || event.deltaY) / this.picture.plotWidth * (to - from);
      this.page.moveBy(by);
    }
  }

  // ---- The keyboard ----

  key(event) {
    const visible = this.picture.stepAt(this.page.view.to) - this.picture.stepAt(this.page.view.from) + 1;
    const far = Math.max(Math.round(visible / 20), 1);
    const start = this.cursor >= 0 ? this.cursor : this.page.chosen[this.plan.number] ?? this.plan.peakStep;
    const moves = {
      ArrowLeft: -(event.shiftKey ? far : 1), ArrowRight: event.shiftKey ? far : 1,
      PageUp: -far, PageDown: far, Home: -this.plan.stepCount, End: this.plan.stepCount,
    };
    if (event.altKey || event.metaKey || event.ctrlKey || this.plan.stepCount === 0) return;
    if (event.key in moves) this.moveCursor(this.cursor < 0 ? start : start + moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.page.zoomAround(this.fractionOf(start), 0.5);
    else if (event.key === "-") this.page.zoomAround(this.fractionOf(start), 2);
    else if (event.key === "0") this.page.zoomTo(0, 1);
    else if (event.key === "p" || event.key === "P") this.moveCursor(this.plan.peakStep);
    else if (event.key === "Enter" || event.key === " ") this.choose(start);
    else if (event.key === "Escape") this.choose(-1);
    else return;
    event.preventDefault();
  }

  fractionOf(step) {
    const {begins, extent} = this.picture;
    return (begins[step] + begins[step + 1]) / 2 / extent;
  }

  moveCursor(step) {
    const inside = Math.min(Math.max(step, 0), this.plan.stepCount - 1);
    this.page.reveal(this.fractionOf(inside));
    this.setCursor(inside);
    announce(`step ${inside}, ${this.plan.stepName(inside)}: ${bytesText(this.plan.total[inside])}`);
  }

  choose(step) {
    if (step < 0) this.setCursor(-1);
    this.page.choose(this.plan, step);
  }

  // ---- The description of the step ----

  setCursor(step) {
    this.cursor = step;
    this.page.cursorMoved(this, step);
  }

  // Moves the cursor to this step, which follows the cursor in another plan's picture.
  follow(step) {
    this.cursor = step;
    this.draw();
  }

  showTip() {
    this.tip.hidden = this.cursor < 0 || (this.drag !== null && this.drag.moved);
    if (this.tip.hidden) return;
    this.tip.replaceChildren(...this.tipRows());
    const x = this.picture.middleOf(this.cursor);
    const toTheLeft = x > this.picture.width / 2;
    this.tip.style.left = toTheLeft ? "" : `${x + 12}px`;
    this.tip.style.right = toTheLeft ? `${this.picture.width - x + 12}px` : "";
  }

  tipRows() {
    const {plan, cursor} = this;
    const row = (name, bytes, style) => element("div", {class: "tip-row"},
      element("span", {class: style ? `swatch ${style}` : "swatch none"}), element("span", {}, name),
      element("span", {class: "number"}, bytesText(bytes)));
    const rows = [element("strong", {}, `step ${cursor}: ${plan.stepName(cursor)}`)];
    KINDS.forEach((kind, i) => {
      if (plan.memory[i][cursor] > 0) rows.push(row(plan.kindName(i), plan.memory[i][cursor], kind));
    });
    if (plan.others > 0) rows.push(row("other micro-batches", plan.others, "other-micro-batches"));
    rows.push(row("in use", plan.total[cursor] + plan.others));
    if (this.page.showsConstants) rows.push(row("with constants", plan.total[cursor] + plan.others + plan.columns.constants));
    rows.push(row("keeping all", plan.columns.keep_all[cursor] + plan.keepAllOthers, "keep-all"));
    const cost = plan.costOf(cursor);
    if (cost > 0) rows.push(element("div", {class: "quiet"}, `takes ${costText(cost, plan.columns.cost_unit)}`));
    return rows;
  }
}
