#include "lib/planning/runtimes/region_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/problem/schedule/expand.h"

namespace ckplan {
namespace {

// The operation of ckplan.torch between the two passes, which creates the first gradients of the
// backward pass. In the expansion of a forward graph, the loss does that.
constexpr std::string_view kBoundaryType = "boundary";

std::vector<bool> SetOf(const JointGraph& graph, const std::vector<OpId>& ops) {
  std::vector<bool> set(graph.ops().size());
  for (const OpId id : ops) set[static_cast<size_t>(id.index())] = true;
  return set;
}

bool IsIn(const std::vector<bool>& set, OpId id) {
  return !id.is_none() && set[static_cast<size_t>(id.index())];
}

// Returns the storages of the gradients that a PyTorch backward operation reads.
std::vector<ValueId> GradientsRead(const JointGraph& graph, OpId id) {
  std::vector<ValueId> gradients;
  const Operation& op = graph.op(id);
  if (op.phase != Phase::kBackward || !op.op.starts_with("aten.")) return gradients;
  for (const ValueId read : op.reads) {
    const ValueId storage = graph.value(read).storage;
    const OpId producer = graph.value(storage).producer;
    if (producer.is_none()) continue;
    const bool is_first = IsBetweenPasses(graph.op(producer));
    if (is_first || graph.op(producer).phase == Phase::kBackward) gradients.push_back(storage);
  }
  return gradients;
}

std::vector<ValueId> Distinct(std::vector<ValueId> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

bool IsBetweenPasses(const Operation& op) { return op.op == kBoundaryType || op.op == kLossType; }

// Determines the moments of one region.
class RegionRuns::Reader {
 public:
  Reader(const JointGraph& graph, const OpRegion& region)
      : graph_(graph),
        region_(region),
        is_inside_(SetOf(graph, region.forward)),
        is_own_backward_(SetOf(graph, region.backward)) {}

  Moments Find() {
    Moments moments;
    FindReads(moments);
    FindBegin(moments);
    FindHeld(moments);
    return moments;
  }

 private:
  OpId ProducerOf(ValueId value) const { return graph_.value(StorageOf(value)).producer; }
  ValueId StorageOf(ValueId value) const { return graph_.value(value).storage; }
  // True if the operation is in the forward pass or reads its results.
  bool IsForward(OpId id) const {
    return graph_.op(id).phase == Phase::kForward || IsBetweenPasses(graph_.op(id));
  }

  // True if the forward pass outside the region, or the caller, has the value.
  bool IsResult(ValueId value) const {
    if (graph_.value(value).is_result) return true;
    const std::vector<OpId>& readers = graph_.value(value).readers;
    return std::any_of(readers.begin(), readers.end(),
                       [&](OpId reader) { return IsForward(reader) && !IsIn(is_inside_, reader); });
  }

  // True if autograd saves the value when a gradient depends on it: an input, or a result of the
  // forward pass. Values without bytes only order operations.
  bool IsSavable(ValueId value) const {
    const OpId producer = ProducerOf(value);
    if (producer.is_none()) return true;
    return HasBytes(value) && IsForward(producer) && !IsBetweenPasses(graph_.op(producer));
  }
  bool HasBytes(ValueId value) const { return graph_.counted_bytes(StorageOf(value)) > Bytes(0); }

  // True if the region's backward pass reads the value here. It may read the region's own values on
  // behalf of another module.
  bool IsSavedRead(OpId id, ValueId value) const {
    if (IsForward(id)) return false;
    if (IsIn(is_own_backward_, id)) return IsSavable(value);
    return HasBytes(value) && IsIn(is_inside_, ProducerOf(value)) && !IsResult(value);
  }

  bool HasSavedRead(OpId id) const {
    const std::vector<ValueId>& reads = graph_.op(id).reads;
    return std::any_of(reads.begin(), reads.end(),
                       [&](ValueId read) { return IsSavedRead(id, read); });
  }

  // Finds the last operation to rerun, and which values are read again.
  void FindReads(Moments& moments) {
    IdVector<ValueId, bool> is_read(graph_.values().size());
    for (const OpId id : graph_.ops().ids()) {
      for (const ValueId read : graph_.op(id).reads) {
        if (IsSavedRead(id, read)) is_read[StorageOf(read)] = true;
      }
    }
    const auto makes_read = [&](OpId id) {
      const std::vector<ValueId>& writes = graph_.op(id).writes;
      return std::any_of(writes.begin(), writes.end(),
                         [&](ValueId write) { return is_read[StorageOf(write)]; });
    };
    const size_t count = region_.forward.size();
    for (size_t i = 0; i < count; ++i) {
      if (region_.rerun != Rerun::kUpToLastSaved || makes_read(region_.forward[i])) {
        moments.run_again = i + 1;
      }
    }
    for (size_t i = 0; i < moments.run_again; ++i) {
      for (const ValueId read : graph_.op(region_.forward[i]).reads)
        is_read[StorageOf(read)] = true;
    }
    for (const OpId id : region_.forward) moments.is_read_again.push_back(makes_read(id));
  }

  void FindBegin(Moments& moments) {
    const bool is_whole = region_.rerun != Rerun::kUpToLastSaved;
    for (const OpId id : graph_.ops().ids()) {
      const bool belongs = HasSavedRead(id) || (is_whole && IsIn(is_own_backward_, id));
      if (!belongs) continue;
      if (moments.begin.is_none()) moments.begin = id;
      moments.end = id;
    }
    if (region_.rerun != Rerun::kDiscarded || moments.begin.is_none()) return;
    for (const OpId id : region_.readers_backward) moments.begin = std::min(moments.begin, id);
  }

  void FindHeld(Moments& moments) {
    for (const OpId id : region_.forward) {
      for (const ValueId read : graph_.op(id).reads) {
        if (!IsIn(is_inside_, ProducerOf(read))) Hold(read, moments);
      }
    }
    if (region_.rerun == Rerun::kUpToLastSaved) return;
    for (const OpId id : region_.forward) {
      for (const ValueId write : graph_.op(id).writes) {
        if (IsResult(write)) Hold(write, moments);
      }
    }
    for (const OpId id : region_.backward) {
      for (const ValueId read : graph_.op(id).reads) {
        const OpId producer = ProducerOf(read);
        const bool is_gradient = !producer.is_none() && !IsSavable(read);
        if (is_gradient && !IsIn(is_own_backward_, producer)) Hold(read, moments);
      }
    }
  }

  void Hold(ValueId value, Moments& moments) const {
    const ValueId storage = StorageOf(value);
    if (graph_.value(storage).producer.is_none()) return;
    std::vector<ValueId>& held = moments.held;
    if (std::find(held.begin(), held.end(), storage) == held.end()) held.push_back(storage);
  }

  const JointGraph& graph_;
  const OpRegion& region_;
  const std::vector<bool> is_inside_;
  const std::vector<bool> is_own_backward_;
};

RegionRuns::RegionRuns(const JointGraph& graph, std::vector<OpRegion> regions)
    : regions_(std::move(regions)), graph_(graph), own_order_(OwnOrder(graph)) {
  for (const OpRegion& region : regions_) moments_.push_back(Reader(graph, region).Find());
  AddOperations();
}

void RegionRuns::AddOperations() {
  JointGraphParts parts = PartsOf(graph_);
  int64_t file_id = 0;
  for (const Operation& op : parts.ops) file_id = std::max(file_id, op.file_id + 1);
  const auto add = [&](std::string name, std::vector<ValueId> reads) {
    Operation op;
    op.file_id = file_id++;
    op.name = std::move(name);
    op.phase = Phase::kBackward;
    op.reads = std::move(reads);
    return parts.ops.push_back(std::move(op));
  };
  const size_t op_count = parts.ops.size();
  taking_ = IdVector<OpId, OpId>(op_count);
  for (const OpId id : IdRange<OpId>(op_count)) {
    if (parts.ops[id].phase != Phase::kForward) continue;
    std::vector<ValueId> writes = parts.ops[id].writes;
    taking_[id] = add(fmt::format("take {}", id.index()), std::move(writes));
  }
  ending_ = IdVector<OpId, OpId>(op_count);
  for (auto& [last, reads] : BackwardsOfSeveral()) {
    ending_[last] = add(fmt::format("end {}", last.index()), std::move(reads));
  }
  for (Moments& moments : moments_) {
    moments.hold = add(fmt::format("hold {}", file_id), moments.held);
  }
  graph_ = JointGraph::Create(std::move(parts)).value();
}

std::vector<std::pair<OpId, std::vector<ValueId>>> RegionRuns::BackwardsOfSeveral() const {
  std::vector<std::pair<OpId, std::vector<ValueId>>> found;
  std::vector<ValueId> common;  // Gradients that all operations of this backward read.
  std::vector<ValueId> reads;
  size_t count = 0;
  const auto end_before = [&](OpId next) {
    if (count > 1) found.emplace_back(OpId(next.index() - 1), Distinct(std::move(reads)));
    reads.clear();
    count = 0;
  };
  for (const OpId id : own_order_) {
    const std::vector<ValueId> gradients = GradientsRead(graph_, id);
    if (count > 0) {
      std::erase_if(common, [&](ValueId value) {
        return std::find(gradients.begin(), gradients.end(), value) == gradients.end();
      });
      if (common.empty()) end_before(id);
    }
    if (gradients.empty()) continue;
    if (count == 0) common = gradients;
    for (const ValueId read : graph_.op(id).reads) {
      const ValueId storage = graph_.value(read).storage;
      if (!graph_.value(storage).producer.is_none()) reads.push_back(storage);
    }
    ++count;
  }
  end_before(OpId(own_order_.size()));
  return found;
}

size_t RegionRuns::RunAgainCount(int32_t region) const {
  return moments_[static_cast<size_t>(region)].run_again;
}

bool RegionRuns::IsReadAgain(int32_t region, size_t position) const {
  return moments_[static_cast<size_t>(region)].is_read_again[position];
}

std::vector<OpId> RegionRuns::RunsOf(const std::vector<CheckpointedRegion>& checkpointed) const {
  constexpr int32_t kNone = -1;
  IdVector<OpId, int32_t> begins(own_order_.size(), kNone);
  IdVector<OpId, int32_t> ends(own_order_.size(), kNone);
  // Several regions may begin or end at one operation, so each links to the next.
  std::vector<int32_t> next_begin(checkpointed.size(), kNone);
  std::vector<int32_t> next_end(checkpointed.size(), kNone);
  for (size_t i = checkpointed.size(); i-- > 0;) {
    const Moments& moments = moments_[static_cast<size_t>(checkpointed[i].region)];
    if (moments.begin.is_none()) continue;
    next_begin[i] = std::exchange(begins[moments.begin], static_cast<int32_t>(i));
    next_end[i] = std::exchange(ends[moments.end], static_cast<int32_t>(i));
  }
  std::vector<OpId> runs;
  const auto run_again = [&](const CheckpointedRegion& each) {
    const OpRegion& region = regions_[static_cast<size_t>(each.region)];
    const size_t count = moments_[static_cast<size_t>(each.region)].run_again;
    for (size_t i = 0; i < count; ++i) {
      const bool is_saved = !each.is_saved.empty() && each.is_saved[i];
      runs.push_back(is_saved ? taking_[region.forward[i]] : region.forward[i]);
    }
  };
  for (const OpId id : own_order_) {
    for (int32_t i = begins[id]; i != kNone; i = next_begin[static_cast<size_t>(i)]) {
      run_again(checkpointed[static_cast<size_t>(i)]);
    }
    runs.push_back(id);
    if (!ending_[id].is_none()) runs.push_back(ending_[id]);
    for (int32_t i = ends[id]; i != kNone; i = next_end[static_cast<size_t>(i)]) {
      const int32_t region = checkpointed[static_cast<size_t>(i)].region;
      runs.push_back(moments_[static_cast<size_t>(region)].hold);
    }
  }
  return runs;
}

}  // namespace ckplan
