// A plan in the form that the pictures need, made from the columns that the program wrote (lib/files/emit/report.h).
//
// Spans are the memory at the moments [begin, end). The memory of a step is that of its highest moment
// (lib/planning/explain/memory_spans.h).
class PlanData {
  constructor(columns, graph, number) {
    Object.assign(this, {columns, graph, letter: LETTERS[number], number});
    this.stepCount = columns.phases.length;
    this.stepBegin = new Float64Array(this.stepCount + 1);
    for (let k = 0; k < this.stepCount; ++k) {
      this.stepBegin[k + 1] = this.stepBegin[k] + columns.moments[k];
    }
    this.sumMemory();
    this.sumTimes();
    this.findReads();
    this.kindsUsed = KINDS.map((_, kind) => columns.span_kind.includes(String(kind)));
  }

  // Fills this.memory[kind][step] and this.total[step].
  sumMemory() {
    const {span_begin: begins, span_moments: lengths, span_bytes: sizes, span_kind: kinds} = this.columns;
    const moments = this.stepBegin[this.stepCount];
    this.total = new Float64Array(this.stepCount);
    this.memory = KINDS.map((_, kind) => {
      const change = new Float64Array(moments + 2);
      for (let i = 0; i < begins.length; ++i) {
        if (kinds.charCodeAt(i) - 48 !== kind) continue;
        change[begins[i]] += sizes[i];
        change[begins[i] + lengths[i]] -= sizes[i];
      }
      const bySteps = new Float64Array(this.stepCount);
      let held = 0;
      let moment = 0;
      for (let k = 0; k < this.stepCount; ++k) {
        const highest = this.momentOf(k);
        for (; moment <= highest; ++moment) held += change[moment];
        bySteps[k] = held;
        this.total[k] += held;
      }
      return bySteps;
    });
  }

  // Computes where each step begins, in units of cost and with its wait for a copy. A step without cost gets a
  // small width, so that it can be pointed at.
  sumTimes() {
    this.timeBegin = new Float64Array(this.stepCount + 1);
    for (let k = 0; k < this.stepCount; ++k) {
      const wait = this.columns.offload ? this.columns.offload.step_waits[k] : 0;
      this.timeBegin[k + 1] = this.timeBegin[k] + Math.max(this.costOf(k) + wait, 1);
    }
  }

  findReads() {
    this.readBegin = new Float64Array(this.columns.span_read_count.length + 1);
    this.columns.span_read_count.forEach((count, i) => {
      this.readBegin[i + 1] = this.readBegin[i] + count;
    });
  }

  momentOf(step) {
    return this.stepBegin[step] + this.columns.highest[step];
  }

  costOf(step) {
    const phase = this.columns.phases[step];
    if ("lxodi".includes(phase)) return 0;
    const costs = phase === "b" && !this.graph.joint ? this.graph.backward_cost : this.graph.run_cost;
    return costs[this.columns.step_of[step]];
  }

  get peak() { return this.columns.peak; }
  // The memory that other micro-batches have saved, in addition to that of the steps.
  get others() { return this.columns.other_micro_batches; }
  get keepAllOthers() { return this.columns.keep_all_other_micro_batches; }
  get peakStep() { return this.columns.peak_step; }
  get addedShare() { return this.columns.step_cost > 0 ? this.columns.added_cost / this.columns.step_cost : 0; }

  get title() {
    return `${this.letter}: ${this.columns.name}`;
  }

  // The beginning of the backward pass: the loss or, in a joint graph, its first step; -1 if unknown.
  get boundary() {
    const loss = this.columns.phases.indexOf("l");
    return loss >= 0 ? loss : this.columns.phases.indexOf("b");
  }

  // Returns a text such as "backward of conv1".
  stepName(step) { return this.stepWords(step).join(""); }

  // Returns what the step does and the name of what it does it with, such as "backward of " and "conv1".
  stepWords(step) {
    const phase = this.columns.phases[step];
    const index = this.columns.step_of[step];
    if (phase === "l") return ["the loss", ""];
    const ofTensor = {x: "the release of ", o: "the copy to the host of ", d: "the drop of ", i: "the copy back of "};
    if (phase in ofTensor) return [ofTensor[phase], this.graph.tensors[index]];
    const words = this.graph.joint ? {f: "run of ", r: "another run of ", b: "run of "} : {f: "forward of ", r: "recomputation of ", b: "backward of "};
    // What runs again mostly does so where the backward pass needs it.
    const pass = phase === "r" && this.boundary >= 0 && step > this.boundary ? "backward: " : "";
    return [pass + words[phase], this.graph.nodes[index]];
  }

  // Names the step's work in a way that is equal in all plans; runs after the first have no such name.
  workOf(step) {
    const phase = this.columns.phases[step];
    if ("rxodi".includes(phase)) return "";
    return phase === "l" ? "loss" : `${phase === "b"} ${this.graph.nodes[this.columns.step_of[step]]}`;
  }

  // Returns the step with the same work as a step of another plan; -1 if there is none.
  stepLike(other, step) {
    if (!this.stepOfWork) {
      this.stepOfWork = new Map();
      for (let k = 0; k < this.stepCount; ++k) {
        const work = this.workOf(k);
        if (work) this.stepOfWork.set(work, k);
      }
    }
    return this.stepOfWork.get(other.workOf(step)) ?? -1;
  }

  stepOfMoment(moment) {
    return Math.min(lastAtMost(this.stepBegin, moment), this.stepCount - 1);
  }

  // Returns the spans in memory at the step's highest moment, the largest first.
  liveAt(step) {
    if (this.stepCount === 0) return [];
    const moment = this.momentOf(step);
    const {span_begin: begins, span_moments: lengths, span_bytes: sizes} = this.columns;
    const live = [];
    for (let i = 0; i < begins.length; ++i) {
      if (begins[i] <= moment && moment < begins[i] + lengths[i]) live.push(i);
    }
    return live.sort((a, b) => sizes[b] - sizes[a] || a - b);
  }

  spanSteps(span) {
    const begin = this.columns.span_begin[span];
    return [this.stepOfMoment(begin), this.stepOfMoment(begin + this.columns.span_moments[span])];
  }

  // The kind in words: what backward operations of a joint graph make are more than gradients.
  kindName(kind) { return this.graph.kinds[kind] ?? KINDS[kind]; }

  // Whether the step makes or reads the span, or works in it.
  isUsedAt(span, step) {
    const holds = this.columns.span_holds[span];
    if (holds !== "t") return holds === "w";
    return this.spanSteps(span)[0] === step || this.spanReads(span).includes(step);
  }

  spanKind(span) { return this.columns.span_kind.charCodeAt(span) - 48; }

  spanName(span) {
    const index = this.columns.span_of[span];
    const holds = this.columns.span_holds[span];
    if (holds === "w") return `workspace of ${this.graph.nodes[index]}`;
    return holds === "g" ? `gradient of ${this.graph.tensors[index]}` : this.graph.tensors[index];
  }

  // Returns the node that made the span's tensor or works in its memory; -1 for none.
  spanNode(span) {
    const index = this.columns.span_of[span];
    return this.columns.span_holds[span] === "w" ? index : this.graph.tensor_maker[index];
  }

  spanReads(span) {
    return this.columns.span_reads.slice(this.readBegin[span], this.readBegin[span + 1]);
  }

  // Returns the first later step that reads it; -1 if none does.
  nextRead(span, step) {
    return this.spanReads(span).find((read) => read > step) ?? -1;
  }

  // Returns for each tensor the spans that hold it, in order.
  get spansOfTensors() {
    if (!this.tensorSpans) {
      this.tensorSpans = this.graph.tensors.map(() => []);
      for (let i = 0; i < this.columns.span_of.length; ++i) {
        if (this.columns.span_holds[i] === "t") this.tensorSpans[this.columns.span_of[i]].push(i);
      }
    }
    return this.tensorSpans;
  }
}

// Returns the modules around a node, the outermost first.
function modulesOf(graph, node) {
  const paths = [];
  for (let m = node < 0 ? -1 : graph.node_module[node]; m >= 0; m = graph.module_parent[m]) {
    paths.unshift(graph.modules[m]);
  }
  return paths;
}
