#include "lib/problem/schedule/lower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

std::vector<NodeId> GraphOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

// Returns the nodes segment by segment, in the graph's own order within each segment.
std::vector<NodeId> SegmentOrder(const TensorGraph& graph, const LowerSetSequence& sequence) {
  std::vector<NodeId> order = GraphOrder(graph);
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
    return sequence.segment_of[a] < sequence.segment_of[b];
  });
  return order;
}

class OnDemandLowering {
 public:
  OnDemandLowering(const TensorGraph& graph, const IdVector<NodeId, bool>& is_kept)
      : graph_(graph), is_present_(is_kept) {}

  Schedule Run(const std::vector<NodeId>& order) && {
    schedule_.steps.reserve(3 * order.size() + 1);
    for (const NodeId id : order) schedule_.steps.push_back(Step::Forward(id));
    schedule_.steps.push_back(Step::Loss());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      PollStop();
      for (const TensorId read : graph_.node(*it).backward_reads) Provide(read);
      schedule_.steps.push_back(Step::Backward(*it));
    }
    return std::move(schedule_);
  }

 private:
  // A node that must run, and the number of its inputs that are already available.
  struct Frame {
    NodeId node;
    size_t inputs_done = 0;
  };

  void Visit(TensorId tensor) {
    const NodeId producer = graph_.tensor(tensor).producer;
    if (!producer.is_none() && !is_present_[producer]) stack_.push_back({producer});
  }

  // Depth-first without recursion: a chain of dropped nodes may have 100,000 nodes.
  void Provide(TensorId wanted) {
    Visit(wanted);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const NodeId id = frame.node;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      if (frame.inputs_done < inputs.size()) {
        Visit(inputs[frame.inputs_done++]);
        continue;
      }
      PollStop();
      stack_.pop_back();
      schedule_.steps.push_back(Step::Forward(id));
      is_present_[id] = true;
    }
  }

  const TensorGraph& graph_;
  IdVector<NodeId, bool> is_present_;
  std::vector<Frame> stack_;
  Schedule schedule_;
};

}  // namespace

IdVector<NodeId, bool> KeptBy(const TensorGraph& graph, const LowerSetSequence& sequence) {
  IdVector<NodeId, bool> is_kept(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) {
    const int32_t segment = sequence.segment_of[id];
    if (segment == sequence.segment_count - 1) is_kept[id] = true;
    for (const TensorId input : graph.node(id).inputs) {
      const NodeId producer = graph.tensor(input).producer;
      if (!producer.is_none() && sequence.segment_of[producer] < segment) is_kept[producer] = true;
    }
  }
  return is_kept;
}

Schedule LowerStrategy(const TensorGraph& graph, const Strategy& strategy) {
  if (const auto* schedule = std::get_if<Schedule>(&strategy)) return *schedule;
  if (const auto* kept = std::get_if<KeptSet>(&strategy)) {
    return OnDemandLowering(graph, kept->is_kept).Run(GraphOrder(graph));
  }
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) {
    return LowerRecursiveSplit(graph, *split);
  }
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  return OnDemandLowering(graph, KeptBy(graph, sequence)).Run(SegmentOrder(graph, sequence));
}

IdVector<NodeId, int32_t> SegmentsOf(const TensorGraph& graph, const Strategy& strategy) {
  if (const auto* sequence = std::get_if<LowerSetSequence>(&strategy)) return sequence->segment_of;
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) return OutermostRanges(*split);
  return IdVector<NodeId, int32_t>(graph.nodes().size());
}

namespace {

class RecursiveLowering {
 public:
  RecursiveLowering(const TensorGraph& graph, const RecursiveSplit& split)
      : graph_(graph),
        split_(split),
        nodes_of_block_(static_cast<size_t>(split.block_count)),
        last_reader_(graph.nodes().size()),
        crossing_(static_cast<size_t>(split.block_count) + 1),
        is_present_(graph.nodes().size()) {
    for (const NodeId id : graph.nodes().ids()) {
      nodes_of_block_[static_cast<size_t>(split.block_of[id])].push_back(id);
      last_reader_[id] = split.block_of[id];
      for (const TensorId input : graph.node(id).inputs) {
        const NodeId producer = graph.tensor(input).producer;
        if (producer.is_none()) continue;
        last_reader_[producer] = std::max(last_reader_[producer], split.block_of[id]);
      }
    }
    for (const NodeId id : graph.nodes().ids()) {
      PollStop();
      for (int32_t cut = split.block_of[id] + 1; cut <= last_reader_[id]; ++cut) {
        crossing_[static_cast<size_t>(cut)].push_back(id);
      }
    }
  }

  Schedule Run() && {
    for (const std::vector<NodeId>& block : nodes_of_block_) {
      for (const NodeId id : block) schedule_.steps.push_back(Step::Forward(id));
    }
    schedule_.steps.push_back(Step::Loss());
    for (const int32_t cut : CutsTowardsEnd(0, split_.block_count)) {
      for (const NodeId id : Crossing(cut)) is_present_[id] = true;
    }
    for (const NodeId id : nodes_of_block_.back()) is_present_[id] = true;
    Backward(0, split_.block_count);
    return RemoveUnreadRuns(graph_, schedule_);
  }

 private:
  // A node that must run, and the number of its inputs that are already available.
  struct Frame {
    NodeId node;
    size_t inputs_done = 0;
  };

  const std::vector<NodeId>& Crossing(int32_t cut) const {
    return crossing_[static_cast<size_t>(cut)];
  }

  // Returns the cuts of [begin, end), of its last range, of that range's last range, and so on.
  // Running [begin, end) forward keeps the results that cross them.
  std::vector<int32_t> CutsTowardsEnd(int32_t begin, int32_t end) const {
    std::vector<int32_t> cuts;
    while (end - begin > 1) {
      const std::vector<int32_t> bounds = CutRange(begin, end, split_.kept_per_level);
      cuts.insert(cuts.end(), bounds.begin() + 1, bounds.end() - 1);
      begin = bounds[bounds.size() - 2];
    }
    return cuts;
  }

  // Requires that all results that cross CutsTowardsEnd(begin, end) are in memory.
  void Backward(int32_t begin, int32_t end) {
    if (end - begin <= 1) {
      BackwardOfBlock(begin);
      return;
    }
    const std::vector<int32_t> bounds = CutRange(begin, end, split_.kept_per_level);
    for (size_t i = bounds.size() - 1; i > 0; --i) {
      if (i + 1 < bounds.size()) RerunForward(bounds[i - 1], bounds[i]);
      Backward(bounds[i - 1], bounds[i]);
    }
  }

  void RerunForward(int32_t begin, int32_t end) {
    made_.clear();
    const std::vector<int32_t> cuts = CutsTowardsEnd(begin, end);
    for (const int32_t cut : cuts) {
      for (const NodeId id : Crossing(cut)) Provide(id);
    }
    for (const NodeId id : made_) is_present_[id] = false;
    for (const int32_t cut : cuts) {
      for (const NodeId id : Crossing(cut)) is_present_[id] = true;
    }
  }

  void BackwardOfBlock(int32_t block) {
    PollStop();
    const std::vector<NodeId>& nodes = nodes_of_block_[static_cast<size_t>(block)];
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      for (const TensorId read : graph_.node(*it).backward_reads) {
        const NodeId producer = graph_.tensor(read).producer;
        if (!producer.is_none()) Provide(producer);
      }
      schedule_.steps.push_back(Step::Backward(*it));
    }
  }

  void Visit(NodeId id) {
    if (!is_present_[id]) stack_.push_back({id});
  }

  // Depth-first without recursion: a range may have 100,000 nodes.
  void Provide(NodeId wanted) {
    Visit(wanted);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const NodeId id = frame.node;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      if (frame.inputs_done < inputs.size()) {
        const NodeId producer = graph_.tensor(inputs[frame.inputs_done++]).producer;
        if (!producer.is_none()) Visit(producer);
        continue;
      }
      PollStop();
      stack_.pop_back();
      schedule_.steps.push_back(Step::Forward(id));
      is_present_[id] = true;
      made_.push_back(id);
    }
  }

  const TensorGraph& graph_;
  const RecursiveSplit& split_;
  std::vector<std::vector<NodeId>> nodes_of_block_;
  IdVector<NodeId, int32_t> last_reader_;  // The last block that reads the node's outputs.
  // crossing_[c]: nodes before block c whose outputs block c or a later block reads.
  std::vector<std::vector<NodeId>> crossing_;
  IdVector<NodeId, bool> is_present_;
  std::vector<Frame> stack_;
  std::vector<NodeId> made_;  // The nodes that the current re-run of a range has run.
  Schedule schedule_;
};

}  // namespace

std::vector<int32_t> CutRange(int32_t begin, int32_t end, int32_t kept_per_level) {
  const int32_t ranges = std::min(end - begin - 1, kept_per_level) + 1;
  std::vector<int32_t> bounds;
  for (int64_t i = 0; i <= ranges; ++i) {
    bounds.push_back(begin + static_cast<int32_t>(int64_t{end - begin} * i / ranges));
  }
  return bounds;
}

IdVector<NodeId, int32_t> OutermostRanges(const RecursiveSplit& split) {
  const std::vector<int32_t> bounds = CutRange(0, split.block_count, split.kept_per_level);
  IdVector<NodeId, int32_t> range_of(split.block_of.size());
  for (const NodeId id : split.block_of.ids()) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end(), split.block_of[id]);
    range_of[id] = static_cast<int32_t>(above - bounds.begin()) - 1;
  }
  return range_of;
}

Schedule LowerRecursiveSplit(const TensorGraph& graph, const RecursiveSplit& split) {
  return RecursiveLowering(graph, split).Run();
}

Schedule RemoveUnreadRuns(const TrainingStep& of, const Schedule& schedule) {
  const auto is_run = [](const Step& step) {
    return step.kind == StepKind::kForward || step.kind == StepKind::kRun;
  };
  IdVector<NodeId, int32_t> runs_before(of.node_count());
  for (const Step& step : schedule.steps) {
    if (is_run(step)) ++runs_before[step.node()];
  }
  IdVector<TensorId, bool> is_read(of.tensor_count());
  if (of.is_joint()) {
    for (const ValueId result : of.joint().results()) is_read[result] = true;
  }
  Schedule kept;
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    PollStop();
    if (is_run(*step)) {
      const std::vector<TensorId>& outputs = of.OutputsOf(step->node());
      const bool is_first = --runs_before[step->node()] == 0;
      const bool is_read_later = std::any_of(outputs.begin(), outputs.end(),
                                             [&](TensorId output) { return is_read[output]; });
      if (!is_first && !is_read_later) continue;
      for (const TensorId output : outputs) is_read[output] = false;
    }
    for (const TensorId read : of.ReadsOf(*step)) is_read[read] = true;
    if (step->kind == StepKind::kOut) is_read[step->tensor()] = true;
    kept.steps.push_back(*step);
  }
  std::reverse(kept.steps.begin(), kept.steps.end());
  return kept;
}

namespace {

// Returns the last node of each region whose outputs the region's backward reads, or none.
std::vector<NodeId> LastReadNodes(const TensorGraph& graph,
                                  const IdVector<NodeId, int32_t>& region_of) {
  std::vector<NodeId> last(region_of.size());
  for (const NodeId node : graph.nodes().ids()) {
    const int32_t region = region_of[node];
    if (region < 0) continue;
    NodeId& latest = last[static_cast<size_t>(region)];
    for (const TensorId tensor : graph.node(node).backward_reads) {
      const NodeId producer = graph.tensor(tensor).producer;
      if (!producer.is_none() && region_of[producer] == region) latest = std::max(latest, producer);
    }
  }
  return last;
}

// Returns the nodes that each region reruns: those up to the last one that its backward reads.
std::vector<std::vector<NodeId>> FindReruns(const TensorGraph& graph,
                                            const IdVector<NodeId, int32_t>& region_of) {
  const std::vector<NodeId> last = LastReadNodes(graph, region_of);
  std::vector<std::vector<NodeId>> reruns(region_of.size());
  for (const NodeId node : graph.nodes().ids()) {
    const int32_t region = region_of[node];
    if (region >= 0 && node <= last[static_cast<size_t>(region)]) {
      reruns[static_cast<size_t>(region)].push_back(node);
    }
  }
  return reruns;
}

}  // namespace

Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of) {
  std::vector<std::vector<NodeId>> reruns = FindReruns(graph, region_of);
  std::vector<NodeId> order;
  for (const NodeId node : graph.nodes().ids()) order.push_back(node);
  Schedule schedule;
  for (const NodeId node : order) schedule.steps.push_back(Step::Forward(node));
  schedule.steps.push_back(Step::Loss());
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    // A node whose backward reads nothing does not trigger the rerun.
    if (region_of[*it] >= 0 && !graph.node(*it).backward_reads.empty()) {
      auto& rerun = reruns[static_cast<size_t>(region_of[*it])];
      for (const NodeId node : std::exchange(rerun, {})) {
        schedule.steps.push_back(Step::Forward(node));
      }
    }
    schedule.steps.push_back(Step::Backward(*it));
  }
  return schedule;
}

namespace {

class MirroredLowering {
 public:
  MirroredLowering(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts)
      : graph_(graph), counts_(counts) {
    size_t copies = 0;
    for (const NodeId id : graph.nodes().ids()) {
      first_copy_.push_back(copies);
      copies += static_cast<size_t>(counts[id]);
    }
    has_run_.resize(copies);
  }

  Schedule Run() && {
    for (const NodeId id : graph_.nodes().ids()) schedule_.steps.push_back(Step::Forward(id));
    schedule_.steps.push_back(Step::Loss());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      PollStop();
      const NodeId id(i);
      for (const TensorId read : graph_.node(id).backward_reads) Provide(read);
      schedule_.steps.push_back(Step::Backward(id));
    }
    return std::move(schedule_);
  }

 private:
  // A copy that must run, and the number of its inputs that are already available.
  struct Frame {
    NodeId node;
    int32_t copy = 0;
    size_t inputs_done = 0;
  };

  // Pushes the copy of the tensor's producer that copy `copy` of the reader reads, unless it has
  // run.
  void Visit(TensorId tensor, int32_t copy) {
    const NodeId producer = graph_.tensor(tensor).producer;
    if (producer.is_none()) return;
    const int32_t seen = std::min(copy, counts_[producer]);
    if (seen > 0 && !has_run_[IndexOf(producer, seen)]) stack_.push_back({producer, seen});
  }

  // Depth-first without recursion: a chain of dropped nodes may have 100,000 nodes.
  void Provide(TensorId wanted) {
    const NodeId producer = graph_.tensor(wanted).producer;
    if (producer.is_none()) return;
    Visit(wanted, counts_[producer]);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const NodeId id = frame.node;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      if (frame.inputs_done < inputs.size()) {
        const TensorId input = inputs[frame.inputs_done++];
        Visit(input, frame.copy);
        continue;
      }
      PollStop();
      has_run_[IndexOf(id, frame.copy)] = true;
      stack_.pop_back();
      schedule_.steps.push_back(Step::Forward(id));
    }
  }

  size_t IndexOf(NodeId id, int32_t copy) const {
    return first_copy_[id] + static_cast<size_t>(copy - 1);
  }

  const TensorGraph& graph_;
  const IdVector<NodeId, int32_t>& counts_;
  IdVector<NodeId, size_t> first_copy_;
  std::vector<bool> has_run_;
  std::vector<Frame> stack_;
  Schedule schedule_;
};

}  // namespace

Schedule LowerMirrorCounts(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts) {
  return MirroredLowering(graph, counts).Run();
}

namespace {

template <typename T>
IdVector<NodeId, T> PerNode(const LayerFold& fold, const IdVector<NodeId, T>& per_layer) {
  IdVector<NodeId, T> per_node;
  for (const NodeId layer : fold.layer_of) per_node.push_back(per_layer[layer]);
  return per_node;
}

KeptSet UnfoldKept(const LayerFold& fold, const KeptSet& kept) {
  if (std::all_of(kept.is_kept.begin(), kept.is_kept.end(), [](bool is_kept) { return is_kept; })) {
    return {IdVector<NodeId, bool>(fold.layer_of.size(), true)};
  }
  IdVector<NodeId, bool> is_kept = PerNode(fold, kept.is_kept);
  for (const NodeId node : is_kept.ids()) {
    is_kept[node] = is_kept[node] && fold.makes_result[node];
  }
  return {std::move(is_kept)};
}

Schedule UnfoldSchedule(const LayerFold& fold, const Schedule& schedule) {
  CKPLAN_CHECK(schedule.frees == FreePolicy::kLiveness, "a solver's schedule frees by liveness");
  IdVector<NodeId, std::vector<NodeId>> nodes_of(fold.graph.nodes().size());
  for (const NodeId node : fold.layer_of.ids()) nodes_of[fold.layer_of[node]].push_back(node);
  Schedule unfolded;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kLoss) {
      unfolded.steps.push_back(step);
      continue;
    }
    const std::vector<NodeId>& nodes = nodes_of[step.node()];
    if (step.kind == StepKind::kForward) {
      for (const NodeId node : nodes) unfolded.steps.push_back(Step::Forward(node));
    } else {
      for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
        unfolded.steps.push_back(Step::Backward(*it));
      }
    }
  }
  return unfolded;
}

}  // namespace

Strategy Unfold(const LayerFold& fold, const Strategy& strategy) {
  if (const auto* schedule = std::get_if<Schedule>(&strategy)) {
    return UnfoldSchedule(fold, *schedule);
  }
  if (const auto* kept = std::get_if<KeptSet>(&strategy)) return UnfoldKept(fold, *kept);
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) {
    return RecursiveSplit{PerNode(fold, split->block_of), split->block_count,
                          split->kept_per_level};
  }
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  return LowerSetSequence{PerNode(fold, sequence.segment_of), sequence.segment_count};
}

}  // namespace ckplan
