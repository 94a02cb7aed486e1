#include "lib/files/model/marker_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

// Derives the steps as a reader of the markers does by the rule.
class RuleOfOrder {
 public:
  RuleOfOrder(const std::vector<FileRow>& rows, const IdVector<NodeId, NodeDecision>& decisions)
      : rows_(rows), decisions_(decisions), is_present_(rows.size()) {}

  std::vector<Step> Steps() && {
    std::vector<size_t> order;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].role != NodeRole::kNode) continue;
      order.push_back(i);
      is_present_[i] = DecisionOn(i).action != NodeAction::kRecompute;
    }
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return DecisionOn(a).segment < DecisionOn(b).segment;
    });
    for (const size_t node : order) steps_.push_back(Step::Forward(rows_[node].node));
    steps_.push_back(Step::Loss());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      PollStop();
      for (const ValuePlace& read : rows_[*it].operations.front().backward_reads) {
        Provide(read.kind == ValuePlace::Kind::kInput
                    ? MakerOf(*it, static_cast<size_t>(read.position))
                    : *it);
      }
      steps_.push_back(Step::Backward(rows_[*it].node));
    }
    return std::move(steps_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // A node that must run again, and how many of its inputs have been provided.
  struct Frame {
    size_t node;
    size_t inputs_done = 0;
  };

  const NodeDecision& DecisionOn(size_t node) const { return decisions_[rows_[node].node]; }

  // Returns the node whose memory holds the input; none if it is constant or given from outside.
  size_t MakerOf(size_t node, size_t input) const {
    do {
      if (input >= rows_[node].makers.size() || rows_[node].makers[input] < 0) return kNone;
      node = static_cast<size_t>(rows_[node].makers[input]);
      input = 0;
    } while (rows_[node].role == NodeRole::kView);
    return rows_[node].role == NodeRole::kNode ? node : kNone;
  }

  void Visit(size_t node, std::vector<Frame>* stack) const {
    if (node != kNone && !is_present_[node]) stack->push_back({node});
  }

  // Depth-first without recursion: the reruns for one step may form a chain of 100,000 nodes.
  void Provide(size_t wanted) {
    std::vector<Frame> stack;
    Visit(wanted, &stack);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const size_t node = frame.node;
      if (frame.inputs_done < rows_[node].makers.size()) {
        Visit(MakerOf(node, frame.inputs_done++), &stack);
        continue;
      }
      PollStop();
      stack.pop_back();
      steps_.push_back(Step::Forward(rows_[node].node));
      is_present_[node] = true;
    }
  }

  const std::vector<FileRow>& rows_;
  const IdVector<NodeId, NodeDecision>& decisions_;
  std::vector<bool> is_present_;
  std::vector<Step> steps_;
};

// Returns the markers' name of each node of the graph: "12", or "12.1" in an expanded call.
IdVector<NodeId, std::string> NamesOfNodes(const std::vector<FileRow>& rows, size_t nodes) {
  IdVector<NodeId, std::string> names(nodes);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < rows[i].operations.size(); ++k) {
      const NodeId id = rows[i].operations[k].node;
      if (id.is_none()) continue;
      names[id] = rows[i].is_expanded ? fmt::format("{}.{}", i, k) : std::to_string(i);
    }
  }
  return names;
}

// Returns the file's operation for each node of the graph.
IdVector<NodeId, const FileOperation*> OperationsOf(const std::vector<FileRow>& rows,
                                                    size_t nodes) {
  IdVector<NodeId, const FileOperation*> operations(nodes, nullptr);
  for (const FileRow& row : rows) {
    for (const FileOperation& operation : row.operations) {
      if (!operation.node.is_none()) operations[operation.node] = &operation;
    }
  }
  return operations;
}

std::string_view WordOf(StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return "forward";
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return "backward";
    case StepKind::kFree:
      return "free";
    case StepKind::kOut:
      return "out";
    case StepKind::kDrop:
      return "drop";
    case StepKind::kIn:
      return "in";
    case StepKind::kFreeGradient:
    case StepKind::kRun:
      break;
  }
  CKPLAN_CHECK(false, "markers have no such steps");
  return "";
}

std::string TextOf(const std::vector<FileRow>& rows, size_t nodes, const TensorGraph& graph,
                   const Schedule& schedule) {
  const IdVector<NodeId, std::string> names = NamesOfNodes(rows, nodes);
  const IdVector<NodeId, const FileOperation*> operations = OperationsOf(rows, nodes);
  const auto place_of = [&](NodeId producer, TensorId tensor) {
    const std::vector<TensorId>& outputs = graph.node(producer).outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    return operations[producer]->outputs[static_cast<size_t>(at)];
  };
  std::string text;
  std::optional<StepKind> kind;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kFreeGradient) continue;  // Markers leave gradients to the reader.
    if (kind != step.kind) {
      kind = step.kind;
      text += fmt::format("{}{}", text.empty() ? "" : " ", WordOf(*kind));
    }
    if (step.kind == StepKind::kForward || step.kind == StepKind::kBackward) {
      text += ' ' + names[step.node()];
    } else if (IsGradientTransfer(graph, step)) {
      const TensorId tensor = TensorOfGradientTransfer(graph, step);
      const NodeId producer = graph.tensor(tensor).producer;
      text += fmt::format(" {}:g{}", names[producer], place_of(producer, tensor).position);
    } else if (step.kind != StepKind::kLoss) {
      const NodeId producer = graph.tensor(step.tensor()).producer;
      text += fmt::format(" {}:{}", names[producer], TextOf(place_of(producer, step.tensor())));
    }
  }
  return text;
}

bool FollowsRule(const std::vector<FileRow>& rows, const IdVector<NodeId, NodeDecision>& decisions,
                 const Schedule& schedule) {
  const bool has_expanded = std::any_of(rows.begin(), rows.end(), [](const FileRow& row) {
    return row.role == NodeRole::kNode && row.is_expanded;
  });
  if (has_expanded || schedule.frees == FreePolicy::kExplicit) return false;
  if (HasTransfers(schedule)) return false;
  return RuleOfOrder(rows, decisions).Steps() == schedule.steps;
}

}  // namespace

std::string TextOf(const ValuePlace& place) {
  switch (place.kind) {
    case ValuePlace::Kind::kInput:
      return fmt::format("i{}", place.position);
    case ValuePlace::Kind::kOutput:
      return fmt::format("o{}", place.position);
    case ValuePlace::Kind::kStatistic:
      break;
  }
  return "s";
}

std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule) {
  if (FollowsRule(rows, decisions, schedule)) return std::nullopt;
  return TextOf(rows, decisions.size(), graph, schedule);
}

}  // namespace ckplan
