#include "lib/problem/parallel/division.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/text.h"
#include "lib/base/units.h"

namespace ckplan {

std::string TextOf(const Sharding& sharding) {
  return fmt::format("{}:{}", kShardingSystems[static_cast<size_t>(sharding.system)],
                     sharding.devices);
}

std::string TextOf(const PipelineStage& stage) {
  return fmt::format("{}/{}", stage.stages, stage.index);
}

namespace {

// DeepSpeed's nccl_start_alignment_factor.
constexpr int64_t kFlatAlignment = 2;

// A sum of sizes that detects overflow.
class ByteSum {
 public:
  void Add(std::optional<int64_t> amount) {
    sum_ = sum_ && amount ? CheckedAdd(*sum_, *amount) : std::nullopt;
  }
  bool overflows() const { return !sum_.has_value(); }
  Bytes bytes() const { return Bytes(sum_.value_or(0)); }

 private:
  std::optional<int64_t> sum_ = 0;
};

int64_t DivideRoundingUp(int64_t amount, int64_t by) { return amount / by + (amount % by != 0); }

// The constants that a system divides; see the table in division.h.
struct Divided {
  bool parameters = false;
  bool gradients = false;
};
Divided DivisionOf(ShardingSystem system) {
  switch (system) {
    case ShardingSystem::kZero1:
      return {false, false};
    case ShardingSystem::kZero2:
      return {false, true};
    case ShardingSystem::kZero3:
    case ShardingSystem::kFsdp:
      break;
  }
  return {true, true};
}

class Sharder {
 public:
  explicit Sharder(const Sharding& sharding)
      : sharding_(sharding), divided_(DivisionOf(sharding.system)) {}

  void Add(const Parameter& parameter) {
    const int64_t bytes = parameter.bytes.count();
    if (parameter.kind == Parameter::Kind::kBuffer || parameter.elements == 0) {
      return parameters_.Add(bytes);
    }
    const bool is_trained = parameter.kind == Parameter::Kind::kTrained;
    if (is_trained && divided_.gradients) AddGathered(parameter.readers, bytes);
    if (divided_.parameters) return AddDivided(parameter, is_trained);
    parameters_.Add(bytes);
    if (!is_trained) return;
    flat_elements_[bytes / parameter.elements].Add(parameter.elements);
    if (!divided_.gradients) gradients_.Add(bytes);
  }

  Result<ShardedConstants> Finish() && {
    for (const auto& [element_bytes, elements] : flat_elements_) AddFlat(element_bytes, elements);
    for (const auto& [element_bytes, bytes] : flat_parts_) {
      AddOptimized(bytes.bytes().count(), element_bytes);
    }
    ByteSum unsharded = persistent_;
    Bytes max_gathered;
    for (const auto& [node, whole] : gathered_) {
      max_gathered = std::max(max_gathered, whole.bytes());
      if (whole.overflows()) unsharded.Add(std::nullopt);
    }
    unsharded.Add(max_gathered.count());
    for (const ByteSum* sum : {&parameters_, &gradients_, &optimized_, &unsharded}) {
      if (!sum->overflows()) continue;
      return MakeError(
          ErrorCode::kInvalidInput,
          fmt::format("the parameters' size with the padding of {} overflows", TextOf(sharding_)));
    }
    return ShardedConstants{parameters_.bytes(), gradients_.bytes(), optimized_.bytes(),
                            unsharded.bytes(), Merged(std::move(tensors_))};
  }

 private:
  void AddGathered(const std::vector<NodeId>& readers, std::optional<int64_t> bytes) {
    for (const NodeId reader : readers) gathered_[reader].Add(bytes);
  }

  // Each device holds as many elements (or rows) as the first one, so the gathered parameter
  // includes the last device's padding.
  void AddDivided(const Parameter& parameter, bool is_trained) {
    const bool is_by_rows = sharding_.system == ShardingSystem::kFsdp;
    const int64_t units = is_by_rows ? parameter.rows : parameter.elements;
    const int64_t unit_bytes = parameter.bytes.count() / units;
    const int64_t held = DivideRoundingUp(units, sharding_.devices) * unit_bytes;
    const std::optional<int64_t> gathered = CheckedMul(held, sharding_.devices);
    parameters_.Add(held);
    if (is_trained) {
      const int64_t element_bytes = parameter.AsOptimized().element_bytes;
      gradients_.Add(held);
      optimized_.Add(held);
      if (is_by_rows) {
        AddOptimized(held, element_bytes);
      } else {
        flat_parts_[element_bytes].Add(held);
      }
    }
    const bool persists =
        sharding_.system == ShardingSystem::kZero3 && parameter.elements <= kPersistentElements;
    if (persists) return persistent_.Add(gathered);
    AddGathered(parameter.readers, gathered);
  }

  // All trained parameters of a type form one flat list, padded to equal parts.
  void AddFlat(int64_t element_bytes, const ByteSum& elements) {
    const int64_t parts =
        DivideRoundingUp(elements.bytes().count(), kFlatAlignment * sharding_.devices);
    const std::optional<int64_t> held = CheckedMul(kFlatAlignment * parts, element_bytes);
    optimized_.Add(held);
    AddOptimized(held.value_or(0), element_bytes);
    if (divided_.gradients) gradients_.Add(held);
    if (elements.overflows()) optimized_.Add(std::nullopt);
  }

  void AddOptimized(int64_t bytes, int64_t element_bytes) {
    tensors_.push_back({bytes / element_bytes, element_bytes, 1});
  }

  const Sharding sharding_;
  const Divided divided_;
  ByteSum parameters_;
  ByteSum gradients_;
  ByteSum optimized_;
  ByteSum persistent_;
  std::map<NodeId, ByteSum> gathered_;        // Bytes that are whole while a node runs.
  std::map<int64_t, ByteSum> flat_elements_;  // Elements by the bytes of one element.
  // The bytes of a device's parts of all parameters, by the bytes of one element. DeepSpeed keeps
  // them as one list.
  std::map<int64_t, ByteSum> flat_parts_;
  std::vector<OptimizedTensors> tensors_;
};

}  // namespace

Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding) {
  Sharder sharder(sharding);
  for (const Parameter& parameter : parameters) sharder.Add(parameter);
  return std::move(sharder).Finish();
}

namespace {

Cost TotalCostOf(const Node& node) { return node.forward_cost + node.backward_cost; }

// Fills stages greedily so that none costs more than `limit` and each has at least one node.
// Returns the first node of each stage, or nothing if that takes more than `stages` stages.
std::optional<std::vector<NodeId>> FillStages(const TensorGraph& graph, int64_t stages,
                                              Cost limit) {
  std::vector<NodeId> starts;
  Cost filled;
  const auto count = static_cast<int64_t>(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) {
    const Cost cost = TotalCostOf(graph.node(id));
    if (cost > limit) return std::nullopt;
    const auto started = static_cast<int64_t>(starts.size());
    // True if each remaining stage can get only one node.
    const bool must_start_stage = count - id.index() <= stages - started;
    if (starts.empty() || must_start_stage || filled + cost > limit) {
      if (started == stages) return std::nullopt;
      starts.push_back(id);
      filled = Cost(0);
    }
    filled += cost;
  }
  return starts;
}

std::vector<NodeId> BalanceStarts(const TensorGraph& graph, int64_t stages) {
  Cost low;  // A lower bound on the smallest limit.
  Cost high = graph.forward_cost() + graph.backward_cost();
  while (low < high) {
    const Cost middle(low.count() + (high.count() - low.count()) / 2);
    if (FillStages(graph, stages, middle)) {
      high = middle;
    } else {
      low = middle + Cost(1);
    }
  }
  return *FillStages(graph, stages, high);
}

bool IsPartOf(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

Result<NodeId> FindCut(const TensorGraph& graph, const ModuleCalls& modules,
                       const std::string& cut) {
  for (const NodeId id : graph.nodes().ids()) {
    if (graph.node(id).name == cut) return id;
  }
  for (size_t i = 0; i < modules.call_of.size(); ++i) {
    const int32_t call = modules.call_of[NodeId(i)];
    if (call >= 0 && IsPartOf(modules.call(call).path, cut)) return NodeId(i);
  }
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  for (const ModuleCall& call : modules.calls) names.push_back(call.path);
  const std::string hint = DidYouMean(cut, names);
  return Error{
      ErrorCode::kUsage,
      fmt::format("stages: no node or module is named \"{}\"{}", Printable(cut, 200), hint),
      {},
      {}};
}

Result<std::vector<NodeId>> FindNamedStarts(const TensorGraph& graph, const ModuleCalls& modules,
                                            int64_t stages, std::span<const std::string> cuts) {
  if (static_cast<int64_t>(cuts.size()) != stages - 1) {
    return MakeError(ErrorCode::kUsage, fmt::format("{} stages need {} cuts, not {}", stages,
                                                    stages - 1, cuts.size()));
  }
  std::vector<NodeId> starts = {NodeId(0)};
  for (const std::string& cut : cuts) {
    CKPLAN_ASSIGN_OR_RETURN(const NodeId start, FindCut(graph, modules, cut));
    if (start <= starts.back()) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("stages: \"{}\" must come after the start of the previous stage, "
                      "\"{}\"",
                      Printable(cut, 200), Printable(graph.node(starts.back()).name, 200)));
    }
    starts.push_back(start);
  }
  return starts;
}

class StageCutter {
 public:
  StageCutter(const TensorGraph& graph, const NodeRange& nodes) : graph_(graph), nodes_(nodes) {
    stage_.tensor_of.resize(graph.tensors().size());
    stage_.parts.name = graph.name();
  }

  StageGraph Cut() && {
    MarkTensors();
    for (const TensorId id : graph_.tensors().ids()) {
      if (is_used_[id]) AddTensor(id);
    }
    for (NodeId id = nodes_.begin; id < nodes_.end; ++id) AddNode(graph_.node(id));
    AddOutputs();
    return std::move(stage_);
  }

 private:
  bool IsProducedHere(TensorId id) const {
    const NodeId producer = graph_.tensor(id).producer;
    return !producer.is_none() && nodes_.Has(producer);
  }

  void MarkTensors() {
    is_used_.resize(graph_.tensors().size(), false);
    for (NodeId id = nodes_.begin; id < nodes_.end; ++id) {
      const Node& node = graph_.node(id);
      for (const auto* list : {&node.inputs, &node.outputs}) {
        for (const TensorId tensor : *list) is_used_[tensor] = true;
      }
    }
  }

  void AddTensor(TensorId id) {
    Tensor tensor = graph_.tensor(id);
    if (!IsProducedHere(id)) tensor.kind = TensorKind::kInput;
    stage_.tensor_of[id] = stage_.parts.tensors.push_back(std::move(tensor));
  }

  std::vector<TensorId> MapIds(const std::vector<TensorId>& whole) const {
    std::vector<TensorId> mapped;
    for (const TensorId id : whole) mapped.push_back(stage_.tensor_of[id]);
    return mapped;
  }

  void AddNode(const Node& whole) {
    Node node = whole;
    node.inputs = MapIds(whole.inputs);
    node.outputs = MapIds(whole.outputs);
    node.backward_reads = MapIds(whole.backward_reads);
    node.gradient_passthrough = MapIds(whole.gradient_passthrough);
    node.in_place.clear();
    for (const auto& [output, input] : whole.in_place) {
      // Does not overwrite a received tensor, which may be read again.
      if (!IsProducedHere(input)) continue;
      node.in_place.push_back({stage_.tensor_of[output], stage_.tensor_of[input]});
    }
    stage_.parts.nodes.push_back(std::move(node));
  }

  void AddOutputs() {
    IdVector<TensorId, bool> is_output(graph_.tensors().size(), false);
    for (const TensorId id : graph_.outputs()) is_output[id] = true;
    for (const TensorId id : graph_.tensors().ids()) {
      if (!IsProducedHere(id)) continue;
      const std::vector<NodeId>& consumers = graph_.tensor(id).consumers;
      const bool is_sent = !consumers.empty() && consumers.back() >= nodes_.end;
      if (is_sent || is_output[id]) stage_.parts.outputs.push_back(stage_.tensor_of[id]);
    }
  }

  const TensorGraph& graph_;
  const NodeRange nodes_;
  IdVector<TensorId, bool> is_used_;
  StageGraph stage_;
};

}  // namespace

int64_t MicroBatchesInFlight(const PipelineStage& stage, int64_t micro_batches,
                             PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::kGPipe) return micro_batches;
  return std::min(micro_batches, stage.stages - stage.index);
}

Result<std::vector<NodeId>> StartsOfStages(const TensorGraph& graph, const ModuleCalls& modules,
                                           int64_t stages, std::span<const std::string> cuts) {
  if (graph.nodes().size() < static_cast<size_t>(stages)) {
    return MakeError(ErrorCode::kUsage, fmt::format("\"{}\" has {} nodes, too few for {} stages",
                                                    graph.name(), graph.nodes().size(), stages));
  }
  if (cuts.empty()) return BalanceStarts(graph, stages);
  return FindNamedStarts(graph, modules, stages, cuts);
}

NodeRange NodesOfStage(std::span<const NodeId> starts, int64_t index, size_t node_count) {
  const auto at = static_cast<size_t>(index);
  return {starts[at], at + 1 < starts.size() ? starts[at + 1] : NodeId(node_count)};
}

StageGraph CutStage(const TensorGraph& graph, const NodeRange& nodes) {
  return StageCutter(graph, nodes).Cut();
}

}  // namespace ckplan
