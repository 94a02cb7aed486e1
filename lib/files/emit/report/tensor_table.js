// The tensors that plans decide about, to be searched, filtered and sorted; only visible rows are in the page.

const ROW_HEIGHT = 30;
const SPARE_ROWS = 12;

class TensorTable {
  constructor(page) {
    this.page = page;
    this.active = 0;
    this.sort = {column: 3, isDown: true};
    this.search = element("input", {type: "search", id: "search", placeholder: "name, operator or module", autocomplete: "off",
      spellcheck: "false", oninput: () => this.filter()});
    this.choice = element("select", {id: "filter", onchange: () => this.filter()});
    this.count = element("span", {class: "quiet", role: "status"});
    this.body = element("tbody");
    this.head = element("thead");
    this.table = element("table", {class: "tensors"}, this.head, this.body);
    this.box = element("div", {class: "table-box", tabindex: 0, role: "region", "aria-label": "Tensors: arrow keys go through the rows, Enter selects",
      onscroll: () => this.drawRows(), onkeydown: (event) => this.key(event), onfocus: () => this.drawRows(), onblur: () => this.drawRows()}, this.table);
    this.details = element("div", {class: "details", "aria-live": "polite"});
  }

  elements() {
    return [element("div", {class: "controls"},
      element("label", {for: "search"}, "Search ", this.search), element("label", {for: "filter"}, "Show ", this.choice), this.count),
    this.details, this.box];
  }

  // Fills the table for the visible plans.
  fill() {
    const plans = this.page.shown;
    this.rows = rowsOf(plans);
    this.columns = this.columnsOf(plans);
    this.table.style.setProperty("--plans", plans.length);
    const choices = [["all", "all"], ["k", "kept"], ["r", "recomputed"], ["t", "transient"], ["d", "dropped"], ["peak", "in memory at the peak"]];
    if (plans.length > 1) choices.push(["differs", "where the plans differ"]);
    this.choice.replaceChildren(...choices.map(([value, text]) => element("option", {value}, text)));
    this.filter();
  }

  columnsOf(plans) {
    const columns = [
      {title: "Tensor", width: "30%", style: "first", isName: true, key: (row) => row.name, text: (row) => row.name},
      {title: "Operator", width: "13%", style: "spare", key: (row) => row.op, text: (row) => row.op},
      {title: "Module", width: "17%", isName: true, style: "spare", key: (row) => row.module, text: (row) => row.module},
      {title: "Size", width: "8em", isNumber: true, key: (row) => row.bytes, text: (row) => bytesText(row.bytes)},
    ];
    plans.forEach((plan, i) => {
      const prefix = plans.length > 1 ? `${plan.letter}: ` : "";
      const side = (row) => row.sides[i];
      columns.push(
        {title: `${prefix}Action`, width: "9.5em", key: (row) => side(row)?.action ?? "", text: (row) => side(row)?.action ?? "–"},
        {title: `${prefix}At peak`, width: "6.5em", style: "spare", key: (row) => (side(row)?.isAtPeak ? 1 : 0), text: (row) => (side(row)?.isAtPeak ? "yes" : "–")},
        {title: `${prefix}Held`, width: "6.5em", style: "spare", isNumber: true, key: (row) => side(row)?.held ?? -1, text: (row) => (side(row) ? percent(side(row).held) : "–")});
    });
    return columns;
  }

  drawHead() {
    this.table.replaceChildren(element("colgroup", {}, ...this.columns.map((column) => {
      const col = element("col", {class: column.style});
      col.style.width = column.width;
      return col;
    })), this.head, this.body);
    this.head.replaceChildren(element("tr", {}, ...this.columns.map((column, i) => {
      const isSorted = this.sort.column === i;
      const arrow = isSorted ? (this.sort.isDown ? " ▼" : " ▲") : "";
      return element("th", {scope: "col", class: styleOf(column), "aria-sort": isSorted ? (this.sort.isDown ? "descending" : "ascending") : "none"},
        element("button", {type: "button", class: "sort", onclick: () => this.sortBy(i)}, column.title + arrow));
    })));
  }

  sortBy(column) {
    const isDown = this.sort.column === column ? !this.sort.isDown : Boolean(this.columns[column].isNumber);
    this.sort = {column, isDown};
    this.filter();
    this.head.querySelectorAll("button")[column].focus();
  }

  filter() {
    if (this.sort.column >= this.columns.length) this.sort = {column: 3, isDown: true};
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = this.choice.value || "all";
    this.visible = this.rows.filter((row) => matches(row, wanted) && words.every((word) => row.searched.includes(word)));
    const {key} = this.columns[this.sort.column];
    const sign = this.sort.isDown ? -1 : 1;
    const keys = new Map(this.visible.map((row) => [row, key(row)]));
    this.visible.sort((a, b) => {
      const [left, right] = [keys.get(a), keys.get(b)];
      return left < right ? -sign : left > right ? sign : a.order - b.order;
    });
    this.active = 0;
    this.count.textContent = `${this.visible.length} of ${this.rows.length}`;
    this.drawHead();
    this.shortNames = new Map();
    this.box.scrollTop = 0;
    this.drawRows();
  }

  // Returns the names in a column, short enough for its width.
  namesIn(column, i) {
    const room = charactersIn(this.head.querySelectorAll("th")[i].clientWidth - 20);
    const known = this.shortNames.get(column);
    if (known?.room === room) return known.names;
    const names = elidedApart(this.visible.map(column.text), room);
    this.shortNames.set(column, {room, names});
    return names;
  }

  // Two rows as high as all hidden rows replace them.
  drawRows() {
    const headHeight = this.head.offsetHeight;
    const first = Math.max(Math.floor(this.box.scrollTop / ROW_HEIGHT) - SPARE_ROWS, 0);
    const inSight = Math.ceil((this.box.clientHeight - headHeight) / ROW_HEIGHT);
    const last = Math.min(first + inSight + 2 * SPARE_ROWS, this.visible.length);
    const columnCount = [...this.head.querySelectorAll("th")].filter((cell) => cell.offsetParent !== null).length || 1;  // Narrow pages hide some.
    const space = (count) => {
      const row = element("tr", {class: "space", "aria-hidden": "true"}, element("td", {colspan: columnCount}));
      row.firstChild.style.height = `${count * ROW_HEIGHT}px`;
      return row;
    };
    const rows = [];
    if (first > 0) rows.push(space(first));
    const names = this.columns.map((column, c) => (column.isName ? this.namesIn(column, c) : null));
    for (let i = first; i < last; ++i) rows.push(this.row(i, names));
    if (last < this.visible.length) rows.push(space(this.visible.length - last));
    if (this.visible.length === 0) rows.push(element("tr", {}, element("td", {colspan: columnCount}, "No tensor is like that.")));
    this.table.setAttribute("aria-rowcount", this.visible.length + 1);
    this.body.replaceChildren(...rows);
  }

  row(i, names) {
    const row = this.visible[i];
    const isActive = i === this.active && document.activeElement === this.box;
    const classes = [isActive ? "active" : "", row.name === this.page.selected ? "selected" : ""].filter(Boolean).join(" ");
    return element("tr", {class: classes || null, "aria-rowindex": i + 2, onclick: () => { this.active = i; this.page.select(row.name); }},
      ...this.columns.map((column, c) => {
        const text = column.text(row);
        return element("td", {class: styleOf(column), title: text}, names[c] ? names[c][i] : text);
      }));
  }

  key(event) {
    const page = Math.max(Math.floor(this.box.clientHeight / ROW_HEIGHT) - 2, 1);
    const moves = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -this.visible.length, End: this.visible.length};
    if (event.target !== this.box || this.visible.length === 0) return;
    if (event.key in moves) {
      this.active = Math.min(Math.max(this.active + moves[event.key], 0), this.visible.length - 1);
      const top = this.active * ROW_HEIGHT;
      const room = this.box.clientHeight - this.head.offsetHeight - ROW_HEIGHT;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      if (top > this.box.scrollTop + room) this.box.scrollTop = top - room;
      this.drawRows();
      const row = this.visible[this.active];
      announce(this.columns.map((column) => `${column.title} ${column.text(row)}`).join(", "));
    } else if (event.key === "Enter" || event.key === " ") {
      this.page.select(this.visible[this.active].name);
    } else if (event.key === "Escape") {
      this.page.select("");
    } else {
      return;
    }
    event.preventDefault();
  }

  // Describes the selected tensor in each plan.
  drawDetails() {
    const name = this.page.selected;
    const row = name ? this.rows.find((each) => each.name === name) : undefined;
    if (!row) {
      this.details.replaceChildren();
      return;
    }
    const parts = this.page.shown.map((plan) => element("p", {}, this.page.shown.length > 1 ? element("strong", {}, `${plan.title}: `) : null, storyOf(plan, name)));
    this.details.replaceChildren(element("div", {class: "details-head"}, element("h3", {}, name),
      element("button", {type: "button", onclick: () => this.page.select("")}, "Clear")),
    element("p", {class: "quiet"}, [row.op, row.module, bytesText(row.bytes)].filter(Boolean).join(" · ")), ...parts,
    element("p", {class: "quiet"}, "Why: ", element("code", {}, `ckplan explain ${shellWord(this.page.shown[0].columns.name)} ${shellWord(`tensor:${name}`)}`)));
  }
}

function styleOf(column) {
  return [column.isNumber ? "number" : "", column.isName ? "name" : "", column.style ?? ""].filter(Boolean).join(" ") || null;
}

function shellWord(word) {
  return /^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function matches(row, wanted) {
  if (wanted === "all") return true;
  if (wanted === "peak") return row.sides.some((side) => side?.isAtPeak);
  if (wanted === "differs") return row.sides[0]?.action !== row.sides[1]?.action || row.sides[0]?.isAtPeak !== row.sides[1]?.isAtPeak;
  return row.sides.some((side) => side?.letter === wanted);
}

// Returns "kept from step 2 to 137, read at steps 3, 5; made again at step 140 ...".
function storyOf(plan, name) {
  const tensor = plan.graph.tensors.indexOf(name);
  const spans = tensor < 0 ? [] : plan.spansOfTensors[tensor];
  if (spans.length === 0) return "never in memory";
  const few = spans.slice(0, 8).map((span) => {
    const [first, last] = plan.spanSteps(span);
    const reads = plan.spanReads(span);
    const readText = reads.length === 0 ? "" : `, read at ${reads.slice(0, 12).join(", ")}${reads.length > 12 ? ", …" : ""}`;
    return `${plan.kindName(plan.spanKind(span))}, in memory at steps ${first}–${last}${readText}`;
  });
  if (spans.length > 8) few.push(`and ${spans.length - 8} times more`);
  return few.join("; ");
}

// Makes one row for each tensor that any plan decides about; equal names in two graphs are the same tensor.
function rowsOf(plans) {
  const rows = new Map();
  plans.forEach((plan, i) => {
    const {graph, columns} = plan;
    const atPeak = new Set(plan.liveAt(plan.peakStep));
    graph.tensors.forEach((name, tensor) => {
      const maker = graph.tensor_maker[tensor];
      if (maker < 0) return;
      let row = rows.get(name);
      if (!row || row.sides[i]) {  // The latter if several tensors have this name.
        const module = modulesOf(graph, maker).at(-1) ?? "";
        const op = graph.ops[graph.node_op[maker]];
        row = {name, op, module, bytes: graph.tensor_bytes[tensor], order: rows.size, sides: plans.map(() => null),
          searched: `${name}\n${op}\n${module}\n${graph.nodes[maker]}`.toLowerCase()};
        rows.set(rows.has(name) ? `${name}\n${tensor}\n${i}` : name, row);
      }
      const letter = columns.actions[maker];
      const spans = plan.spansOfTensors[tensor];
      const steps = spans.reduce((sum, span) => { const [first, last] = plan.spanSteps(span); return sum + last - first + 1; }, 0);
      const times = columns.reruns[maker] > 1 ? ` ${columns.reruns[maker]} times` : "";
      row.sides[i] = {letter, action: ACTIONS[letter] + times, isAtPeak: spans.some((span) => atPeak.has(span)),
        held: plan.stepCount > 0 ? Math.min(steps / plan.stepCount, 1) : 0};
    });
  });
  return [...rows.values()];
}
