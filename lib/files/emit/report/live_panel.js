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
    this.measureRoom();
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

  // Finds how many characters names may have beside the numbers of the two tables, which are side by side as in page.css.
  measureRoom() {
    const width = this.body.clientWidth;
    const isWide = width >= 1000;
    const isNarrow = width < 500;
    const modules = isWide ? 0.4 * width - 28 : width;
    this.moduleRoom = charactersIn((isNarrow ? modules : 0.74 * modules) - 185);
    this.listRoom = charactersIn((Math.max(isWide ? 0.6 * width - 28 : width, 640) - 280) / 2);
  }

  kinds(step, live) {
    const {plan} = this;
    const total = plan.total[step] || 1;
    const bar = element("div", {class: "bar", "aria-hidden": "true"});
    const rows = [];
    KINDS.forEach((kind, i) => {
      const bytes = plan.memory[i][step];
      if (bytes <= 0) return;
      const name = plan.kindName(i);
      const part = element("span", {class: kind, title: `${name}: ${bytesText(bytes)}`});
      part.style.flexGrow = bytes / total;
      bar.append(part);
      const count = live.filter((span) => plan.spanKind(span) === i).length;
      rows.push(element("tr", {}, element("th", {scope: "row"}, element("span", {class: `swatch ${kind}`}), name),
        element("td", {class: "number"}, bytesText(bytes)), element("td", {class: "number"}, percent(bytes / total)),
        element("td", {class: "number"}, String(count))));
    });
    return element("div", {}, bar, element("table", {class: "compact"},
      element("thead", {}, headRow([["Kind"], ["Size", "number"], ["Share", "number"], ["Buffers", "number"]])),
      element("tbody", {}, ...rows)));
  }

  modules(step, live) {
    const {plan} = this;
    const parts = live.map((span) => ({chain: modulesOf(plan.graph, plan.spanNode(span)), bytes: plan.columns.span_bytes[span]}));
    if (parts.every((part) => part.chain.length === 0)) return null;
    const shares = moduleShares(parts, MODULE_ROWS);
    const shown = shares.slice(0, MODULE_ROWS);
    const rest = shares.slice(MODULE_ROWS);
    if (rest.length > 0) shown.push({path: `[${rest.length} others]`, count: 1, bytes: rest.reduce((sum, share) => sum + share.bytes, 0)});
    const total = plan.total[step] || 1;
    const names = elidedApart(shown.map((share) => share.path || "(no module)"), this.moduleRoom - 4);
    const row = ({path, count, bytes}, i) => element("tr", {},
      element("th", {scope: "row", class: "name", title: path}, names[i], count > 1 ? element("span", {class: "quiet"}, ` ×${count}`) : null),
      element("td", {class: "number"}, bytesText(bytes)), element("td", {class: "number"}, percent(bytes / total)),
      element("td", {class: "share"}, shareBar(bytes / total)));
    return element("details", {open: true}, element("summary", {}, "By module"), element("table", {class: "compact"},
      element("thead", {}, headRow([["Module"], ["Size", "number"], ["Share", "number"], ["", "share"]])), element("tbody", {}, ...shown.map(row))));
  }

  list(step, live) {
    const {plan} = this;
    const most = this.showsAll ? MOST_ROWS : FIRST_ROWS;
    const shown = live.slice(0, most);
    const names = elidedApart(shown.map((span) => plan.spanName(span)), this.listRoom);
    const waits = this.shortened(shown.map((span) => this.waitsFor(step, span)));
    const rows = shown.map((span, i) => this.row(step, span, names[i], waits[i]));
    const rest = live.slice(most);
    if (rest.length > 0) {
      const bytes = rest.reduce((sum, span) => sum + plan.columns.span_bytes[span], 0);
      const more = Math.min(live.length, MOST_ROWS);
      const button = this.showsAll ? null : element("button", {type: "button", onclick: () => { this.showsAll = true; this.draw(); }}, `Show ${more}`);
      rows.push(element("tr", {}, element("td", {}, `[${rest.length} others] `, button), element("td", {class: "number"}, bytesText(bytes)), element("td"),
        element("td"), element("td")));
    }
    const box = {class: "scroll", tabindex: 0, role: "region", "aria-label": "What is in memory, largest first"};
    return element("details", {open: true}, element("summary", {}, "Largest first"), element("div", box,
      element("table", {class: "compact live-list"},
        element("thead", {}, headRow([["What", "name"], ["Size", "number"], ["Kind"], ["Steps", "number"], ["Waits for", "name"]])),
        element("tbody", {}, ...rows))));
  }

  // Returns, as `ckplan explain` does at the peak, "used at the peak" or what the next step that reads it does, with what.
  waitsFor(step, span) {
    const {plan} = this;
    if (plan.isUsedAt(span, step)) return [step === plan.peakStep ? "used at the peak" : "used at this step", ""];
    const next = plan.nextRead(span, step);
    return next < 0 ? ["–", ""] : plan.stepWords(next);
  }

  // Shortens the names of steps, and not what is done.
  shortened(steps) {
    const room = this.listRoom - Math.max(...steps.map(([words]) => words.length));
    const names = elidedApart(steps.map(([, name]) => name), Math.max(room, 10));
    return steps.map(([words], i) => words + names[i]);
  }

  row(step, span, name, waits) {
    const {plan, page} = this;
    const whole = plan.spanName(span);
    const [first, last] = plan.spanSteps(span);
    const next = plan.nextRead(span, step);
    const shown = plan.columns.span_holds[span] === "t"
      ? element("button", {type: "button", class: "link", title: whole, onclick: () => page.select(whole)}, name)
      : element("span", {title: whole}, name);
    return element("tr", {}, element("td", {class: "name"}, shown),
      element("td", {class: "number"}, bytesText(plan.columns.span_bytes[span])),
      element("td", {class: "kind"}, element("span", {class: `swatch ${KINDS[plan.spanKind(span)]}`}), plan.kindName(plan.spanKind(span))),
      element("td", {class: "number"}, `${first}–${last}`),
      element("td", {class: "name", title: next >= 0 ? `step ${next}: ${plan.stepName(next)}` : null}, waits));
  }
}

function headRow(cells) {
  return element("tr", {}, ...cells.map(([text, style]) => element("th", {scope: "col", class: style}, ...[text].flat())));
}

function shareBar(share) {
  const bar = element("span", {class: "share-bar", "aria-hidden": "true"});
  bar.style.width = `${Math.max(100 * share, 0.5)}%`;
  return bar;
}
