// The time of a step whose values move to the host and back, as three lanes: the link out, the operations with their
// waits, and the link in.
class LinkLanes {
  constructor(plan) {
    Object.assign(this, {plan, offload: plan.columns.offload});
  }

  static heading(plans) {
    return plans.some((plan) => plan.columns.offload) ? "Copies to the host" : "";
  }

  figure(hasTitle) {
    return element("figure", {class: "panel"}, hasTitle ? element("figcaption", {}, this.plan.title) : null,
      this.offload ? this.drawing() : element("p", {class: "quiet"}, "Every value of this plan stays on the device."));
  }

  drawing() {
    const {host_peak: host, transferred, stall, makespan} = this.offload;
    const unit = this.plan.columns.cost_unit;
    const says = `${bytesText(transferred)} copied, ${bytesText(host)} on the host at most, ${costText(stall, unit)} of ${costText(makespan, unit)} waiting; over ${this.offload.link}`;
    return element("div", {}, element("p", {class: "quiet"}, unbroken(says)), this.svg());
  }

  svg() {
    const [width, lane, left] = [900, 30, 84];
    const scale = (width - left - 6) / Math.max(this.offload.makespan, 1);
    const picture = svgElement("svg", {viewBox: `0 0 ${width} ${3 * lane + 26}`, class: "lanes", role: "img", "aria-label": this.description()});
    const bar = (row, begin, end, style, title) => {
      const rect = svgElement("rect", {x: (left + begin * scale).toFixed(2), y: row * lane + 4, width: Math.max((end - begin) * scale, 0.5).toFixed(2), height: lane - 8, class: style});
      rect.append(svgElement("title", {}, title));
      picture.append(rect);
    };
    ["link out", "operations", "link in"].forEach((name, row) => {
      picture.append(svgElement("rect", {x: left, y: row * lane + 2, width: width - left - 6, height: lane - 4, class: "lane"}));
      picture.append(svgElement("text", {x: 0, y: row * lane + lane / 2 + 5}, name));
    });
    const unit = this.plan.columns.cost_unit;
    for (const [begin, end] of this.pairs(this.offload.work)) bar(1, begin, end, "lane-work", `operations, ${costText(end - begin, unit)}`);
    for (const [begin, end] of this.pairs(this.offload.waits)) bar(1, begin, end, "lane-wait", `waits for a copy, ${costText(end - begin, unit)}`);
    const {copy_ways: ways, copy_of: of, copy_times: times} = this.offload;
    of.forEach((value, i) => {
      const isOut = ways[i] === "o";
      const [begin, end] = [times[2 * i], times[2 * i + 1]];
      bar(isOut ? 0 : 2, begin, end, isOut ? "lane-out" : "lane-in", `${this.plan.graph.tensors[value]}: ${isOut ? "out" : "back"} in ${costText(end - begin, unit)}`);
    });
    this.addAxis(picture, {left, scale, top: 3 * lane});
    return picture;
  }

  addAxis(picture, {left, scale, top}) {
    const {makespan} = this.offload;
    const stride = roundStride(makespan, 6);
    for (let at = 0; at <= makespan; at += stride) {
      picture.append(svgElement("text", {x: (left + at * scale).toFixed(2), y: top + 18, class: "tick"}, costText(at, this.plan.columns.cost_unit)));
    }
  }

  pairs(flat) {
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
    return pairs;
  }

  description() {
    const {copy_of: copies, waits} = this.offload;
    return `Time of plan ${this.plan.title}: ${copies.length} copies over the link, ${waits.length / 2} waits.`;
  }
}
