// The memory at a step of a plan: by kind, by module, and tensor by tensor.

const FIRST_ROWS = 12;
const MOST_ROWS = 300;
const MODULE_ROWS = 12;

class LivePanel {
  constructor(plan, page) {
    Object.assign(this, {plan, page});
    this.showsAll = false;
    this.body = element("div", {class: "panel live"});
  }

  draw() {
    const {plan, page} = this;
    const chosen = page.chosen[plan.number] ?? -1;
    const step = chosen >= 0 ? chosen : plan.peakStep;
    if (plan.stepCount === 0) {
      this.body.replaceChildren(element("h3", {}, page.shown.length > 1 ? plan.title : "Nothing"), element("p", {}, "The plan has no steps."));
      return;
    }
    const live = plan.liveAt(step);
    this.body.replaceChildren(this.heading(step, chosen),
      element("div", {class: "live-parts"}, element("div", {}, this.kinds(step, live), this.modules(step, live)), this.list(step, live)));
  }

  heading(step, chosen) {
    const {plan, page} = this;
    const where = step === plan.peakStep ? "At the peak" : "At a step that you chose";
    const back = element("button", {type: "button", onclick: () => page.choose(plan, -1)}, "Back to the peak");
    return element("div", {class: "live-head"},
      element("h3", {}, page.shown.length > 1 ? `${plan.title}. ${where}` : where),
      element("p", {}, element("strong", {}, bytesText(plan.total[step])),
        ` at step ${step} of ${plan.stepCount}: ${plan.stepName(step)}`,
        plan.others > 0 ? `; beside it other micro-batches have saved ${bytesText(plan.others)}` : null, chosen >= 0 && step !== plan.peakStep ? back : null));
  }

  kinds(step, live) {
    const {plan} = this;
    const total = plan.total[step] || 1;
    const bar = element("div", {class: "bar", "aria-hidden": "true"});
    const rows = [];
    KINDS.forEach((kind, i) => {
      const bytes = plan.memory[i][step];
      if (bytes <= 0) return;
      const part = element("span", {class: kind, title: `${kind}: ${bytesText(bytes)}`});
      part.style.flexGrow = bytes / total;
      bar.append(part);
      const count = live.filter((span) => plan.spanKind(span) === i).length;
      rows.push(element("tr", {}, element("th", {scope: "row"}, element("span", {class: `swatch ${kind}`}), kind),
        element("td", {class: "number"}, bytesText(bytes)), element("td", {class: "number"}, percent(bytes / total)),
        element("td", {class: "number"}, String(count))));
    });
    return element("div", {}, bar, element("table", {class: "compact"},
      element("thead", {}, headRow([["Kind"], ["Size", "number"], ["Share", "number"], ["Buffers", "number"]])),
      element("tbody", {}, ...rows)));
  }

  // Groups by the deepest modules that are few enough to be read.
  modules(step, live) {
    const {plan} = this;
    const chains = live.map((span) => modulesOf(plan.graph, plan.spanNode(span)));
    const depth = Math.max(0, ...chains.map((chain) => chain.length));
    if (depth === 0) return null;
    let sums = null;
    for (let level = 1; level <= depth; ++level) {
      const deeper = new Map();
      live.forEach((span, i) => {
        const path = chains[i].length === 0 ? "" : chains[i][Math.min(level, chains[i].length) - 1];
        deeper.set(path, (deeper.get(path) ?? 0) + plan.columns.span_bytes[span]);
      });
      if (sums !== null && deeper.size > MODULE_ROWS) break;
      sums = deeper;
    }
    const sorted = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const rows = sorted.slice(0, MODULE_ROWS);
    if (sorted.length > rows.length) {
      const rest = sorted.slice(MODULE_ROWS);
      rows.push([`[${rest.length} others]`, rest.reduce((sum, row) => sum + row[1], 0)]);
    }
    const total = plan.total[step] || 1;
    return element("details", {open: true}, element("summary", {}, "By module"), element("table", {class: "compact"},
      element("thead", {}, headRow([["Module"], ["Size", "number"], ["Share", "number"], [""]])),
      element("tbody", {}, ...rows.map(([path, bytes]) => element("tr", {},
        element("th", {scope: "row", class: "name", title: path}, elided(path, 44) || "(none)"), element("td", {class: "number"}, bytesText(bytes)),
        element("td", {class: "number"}, percent(bytes / total)), element("td", {class: "share"}, shareBar(bytes / total)))))));
  }

  list(step, live) {
    const {plan} = this;
    const most = this.showsAll ? MOST_ROWS : FIRST_ROWS;
    const rows = live.slice(0, most).map((span) => this.row(step, span));
    const rest = live.slice(most);
    if (rest.length > 0) {
      const bytes = rest.reduce((sum, span) => sum + plan.columns.span_bytes[span], 0);
      const more = Math.min(live.length, MOST_ROWS);
      const button = this.showsAll ? null : element("button", {type: "button", onclick: () => { this.showsAll = true; this.draw(); }}, `Show ${more}`);
      rows.push(element("tr", {}, element("td", {}, `[${rest.length} others] `, button), element("td"), element("td", {class: "number"}, bytesText(bytes)),
        element("td"), element("td")));
    }
    const box = {class: "scroll", tabindex: 0, role: "region", "aria-label": "What is in memory, largest first"};
    return element("details", {open: true}, element("summary", {}, "Largest first"), element("div", box,
      element("table", {class: "compact live-list"},
        element("thead", {}, headRow([["What"], ["Kind"], ["Size", "number"], ["Steps", "number"], ["Waits for"]])),
        element("tbody", {}, ...rows))));
  }

  row(step, span) {
    const {plan, page} = this;
    const name = plan.spanName(span);
    const kind = KINDS[plan.spanKind(span)];
    const [first, last] = plan.spanSteps(span);
    const next = plan.nextRead(span, step);
    const shown = plan.columns.span_holds[span] === "t"
      ? element("button", {type: "button", class: "link", title: name, onclick: () => page.select(name)}, elided(name, 40))
      : element("span", {title: name}, elided(name, 40));
    return element("tr", {}, element("td", {class: "name"}, shown),
      element("td", {class: "kind"}, element("span", {class: `swatch ${kind}`}), kind),
      element("td", {class: "number"}, bytesText(plan.columns.span_bytes[span])),
      element("td", {class: "number"}, `${first}–${last}`),
      element("td", {class: "name", title: next >= 0 ? `step ${next}` : null}, next >= 0 ? elided(plan.stepName(next), 44) : "nothing more"));
  }
}

function headRow(cells) {
  return element("tr", {}, ...cells.map(([text, style]) => element("th", {scope: "col", class: style}, text)));
}

function shareBar(share) {
  const bar = element("span", {class: "share-bar", "aria-hidden": "true"});
  bar.style.width = `${Math.max(100 * share, 0.5)}%`;
  return bar;
}
