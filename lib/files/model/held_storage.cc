#include "lib/files/model/held_storage.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/files/model/origin.h"
#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/move.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

// The PyTorch operations that return a view of a part, or a transposed view.
constexpr std::array<std::string_view, 9> kPartOperations = {
    "aten.slice",  "aten.split",  "aten.split_with_sizes", "aten.chunk",       "aten.unsafe_chunk",
    "aten.narrow", "aten.select", "aten.unbind",           "aten.tensor_split"};
constexpr std::array<std::string_view, 5> kTransposeOperations = {
    "aten.transpose", "aten.permute", "aten.t", "aten.swapaxes", "aten.movedim"};

// Where a value's elements are: `strides`, in elements, in the memory that `storage` was made in.
struct Layout {
  ValueIndex storage = kNoValue;
  Dims strides;
};

// Returns the strides of a view with other dimensions, as Tensor.view computes them; nullopt if
// no such view exists. Axes that are contiguous in memory form a block, which is then split again.
std::optional<Dims> ViewStrides(const Dims& from, const Dims& strides, const Dims& to) {
  struct Block {
    int64_t size = 1, step = 1;
  };
  if (std::count(from.begin(), from.end(), 0) > 0) return RowMajorStrides(to);
  std::vector<Block> blocks;  // The innermost first.
  for (size_t axis = from.size(); axis-- > 0;) {
    if (from[axis] == 1) continue;
    if (blocks.empty() || strides[axis] != blocks.back().size * blocks.back().step) {
      blocks.push_back({1, strides[axis]});
    }
    blocks.back().size *= from[axis];
  }
  Dims viewed(to.size(), 1);
  size_t left = to.size();
  for (const Block& block : blocks) {
    int64_t covered = 1;
    while (left > 0 && covered < block.size) {
      viewed[--left] = covered * block.step;
      covered *= to[left];
    }
    if (covered != block.size) return std::nullopt;
  }
  return viewed;
}

class RestFinder {
 public:
  RestFinder(const Model::Impl& model, const ModelFacts& facts, Autograd autograd)
      : model_(model), facts_(facts), autograd_(autograd), layouts_(model.values.size()) {}

  std::vector<HeldRest> Find() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const OperationFacts& own = facts_.operations[i];
      if (!own.is_live || !own.is_batch) continue;
      PlaceOutputs(model_.operations[i], own);
      if (own.is_view) continue;
      if (own.rule->statistic == Statistic::kNone) NoteReads(i);
      if (own.has_backward) NoteSaved(i);
    }
    std::vector<HeldRest> rests;
    for (const ValueIndex storage : order_) AddRest(storage, rests);
    return rests;
  }

 private:
  // What is saved of one memory.
  struct Saved {
    std::set<ValueIndex> tensors;  // Roots.
    std::vector<size_t> savers;    // Ascending.
  };

  const Dims& DimsOf(ValueIndex value) const { return model_.value(value).dims; }

  Layout LayoutOf(ValueIndex value) const {
    const Layout& found = layouts_[static_cast<size_t>(value)];
    return found.storage != kNoValue ? found : Layout{value, RowMajorStrides(DimsOf(value))};
  }

  // ---- Where values are -------------------------------------------------------------------------

  void PlaceOutputs(const ModelOperation& operation, const OperationFacts& own) {
    if (operation.input(0) == kNoValue || operation.output(0) == kNoValue) return;
    const Layout from = LayoutOf(operation.inputs[0]);
    const size_t count = own.is_view ? 1 : operation.outputs.size();
    for (size_t i = 0; i < count; ++i) {
      const ValueIndex output = operation.outputs[i];
      if (output == kNoValue) continue;
      if (auto strides = StridesOf(operation, own, from.strides, output)) {
        layouts_[static_cast<size_t>(output)] = {from.storage, std::move(*strides)};
      }
    }
  }

  // Returns nullopt if the output has memory of its own.
  std::optional<Dims> StridesOf(const ModelOperation& operation, const OperationFacts& own,
                                const Dims& from, ValueIndex output) const {
    const ValueIndex input = operation.inputs[0];
    if (own.is_view) return ViewStrides(DimsOf(input), from, DimsOf(output));
    if (own.rule->kind == OpKind::kTranspose) {
      return CameFrom(operation, kTransposeOperations) ? Transposed(own.spec, from) : std::nullopt;
    }
    const std::string_view type = own.spec.type;
    if (type != "Slice" && type != "Split" && type != "Gather") return std::nullopt;
    if (!CameFrom(operation, kPartOperations)) return std::nullopt;
    if (type == "Split") return from;
    return type == "Slice" ? Sliced(own.spec, from) : Selected(own.spec, from);
  }

  // True without metadata, too: the form then decides.
  template <size_t kCount>
  bool CameFrom(const ModelOperation& operation,
                const std::array<std::string_view, kCount>& packets) const {
    const Origin origin = OriginOf(model_, operation);
    return !origin.is_known() || std::any_of(packets.begin(), packets.end(),
                                             [&](auto packet) { return origin.Is(packet); });
  }

  static std::optional<Dims> Transposed(const OpSpec& spec, const Dims& from) {
    const std::vector<int64_t> order = spec.Ints("perm");
    if (order.empty()) return Dims(from.rbegin(), from.rend());
    Dims strides;
    for (const int64_t axis : order) strides.push_back(from[static_cast<size_t>(axis)]);
    return strides;
  }

  static std::optional<Dims> Sliced(const OpSpec& spec, const Dims& from) {
    const Result<MoveShape> move = ReadMoveShape(spec);
    if (!move.ok()) return std::nullopt;
    const Dims whole = RowMajorStrides(spec.input(0).dims);
    Dims strides = from;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      if (whole[axis] == 0) return std::nullopt;
      const int64_t step = move.value().strides[axis] / whole[axis];
      if (step < 1) return std::nullopt;  // PyTorch's flip makes a copy.
      strides[axis] *= step;
    }
    return strides;
  }

  // An element along one axis, by a single number. Other indices make copies.
  static std::optional<Dims> Selected(const OpSpec& spec, const Dims& from) {
    if (!spec.input(1).dims.empty() || !spec.input(1).known) return std::nullopt;
    int64_t axis = spec.Int("axis", 0);
    if (axis < 0) axis += static_cast<int64_t>(from.size());
    Dims strides = from;
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
    return strides;
  }

  // ---- What is read and saved -------------------------------------------------------------------

  // Notes for each memory the operations that read all of it.
  void NoteReads(size_t index) {
    const ModelOperation& operation = model_.operations[index];
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      if (input == kNoValue || !facts_.value(input).is_batch) continue;
      if (!ReadsContents(*facts_.operations[index].rule, i)) continue;
      const ValueIndex root = facts_.value(input).root;
      const ValueIndex storage = LayoutOf(root).storage;
      if (model_.value(root).bytes == model_.value(storage).bytes) {
        readers_[storage].push_back(index);
      }
    }
  }

  void NoteSaved(size_t index) {
    const ModelOperation& operation = model_.operations[index];
    const OperationFacts& own = facts_.operations[index];
    const BackwardReads reads = FindBackwardReads(own.spec, autograd_);
    for (const size_t i : reads.inputs) {
      const ValueIndex input = operation.inputs[i];
      if (!facts_.value(input).is_batch || !ReadsContents(*own.rule, i)) continue;
      const Layout layout = LayoutOf(input);
      if (SavesAsIs(own, i, layout.strides)) Note(index, layout.storage, input);
    }
    for (const size_t i : reads.outputs) {
      if (operation.output(i) != kNoValue) Note(index, operation.outputs[i], operation.outputs[i]);
    }
  }

  // True if PyTorch saves the operand itself, not a contiguous copy of it. Most operations do.
  bool SavesAsIs(const OperationFacts& own, size_t position, const Dims& strides) const {
    const std::string_view type = own.spec.type;
    const Dims& dims = own.spec.input(position).dims;
    if (type == "MatMul" || type == "Gemm") {
      return strides == RowMajorStrides(dims) || IsFactorAsIs(own.spec, position, dims, strides);
    }
    const bool may_copy = type == "InstanceNormalization" || type == "Einsum" ||
                          (type == "BatchNormalization" && autograd_ == Autograd::kTorchCuda);
    return !may_copy || strides == RowMajorStrides(dims);
  }

  // A product of batches merges all axes but the last two. If one factor is a matrix, all axes of
  // the other are merged but the one that the product sums over.
  static bool IsFactorAsIs(const OpSpec& spec, size_t position, Dims dims, Dims strides) {
    const size_t rank = dims.size();
    if (rank <= 2) return true;
    const bool is_layer = spec.input(1 - position).dims.size() <= 2;
    if (is_layer && position == 1) {
      std::swap(dims[rank - 1], dims[rank - 2]);
      std::swap(strides[rank - 1], strides[rank - 2]);
    }
    const auto kept = dims.end() - (is_layer ? 1 : 2);
    Dims merged = {1};
    for (auto dim = dims.begin(); dim != kept; ++dim) merged[0] *= *dim;
    merged.insert(merged.end(), kept, dims.end());
    return ViewStrides(dims, strides, merged).has_value();
  }

  void Note(size_t index, ValueIndex storage, ValueIndex value) {
    if (model_.value(storage).source != ModelValue::Source::kOperation) return;
    const ValueIndex root = facts_.value(value).root;
    if (model_.value(root).source != ModelValue::Source::kOperation) return;
    const auto [found, is_new] = saved_.try_emplace(storage);
    if (is_new) order_.push_back(storage);
    Saved& saved = found->second;
    saved.tensors.insert(root);
    if (saved.savers.empty() || saved.savers.back() != index) saved.savers.push_back(index);
  }

  void AddRest(ValueIndex storage, std::vector<HeldRest>& rests) const {
    const Saved& saved = saved_.at(storage);
    Bytes rest = model_.value(storage).bytes;
    for (const ValueIndex tensor : saved.tensors) rest -= model_.value(tensor).bytes;
    const auto readers = readers_.find(storage);
    if (rest <= Bytes(0) || readers == readers_.end()) return;
    // A reader without a backward after all savers can't hold the rest, so an earlier one makes it.
    for (auto maker = readers->second.rbegin(); maker != readers->second.rend(); ++maker) {
      const auto after = std::upper_bound(saved.savers.begin(), saved.savers.end(), *maker);
      std::vector<size_t> holders(after, saved.savers.end());
      if (holders.empty() && facts_.operations[*maker].has_backward) holders.push_back(*maker);
      if (holders.empty()) continue;
      rests.push_back({storage, *maker, rest, std::move(holders)});
      return;
    }
  }

  const Model::Impl& model_;
  const ModelFacts& facts_;
  const Autograd autograd_;
  std::vector<Layout> layouts_;        // By value; no storage for values with memory of their own.
  std::map<ValueIndex, Saved> saved_;  // By storage.
  std::map<ValueIndex, std::vector<size_t>> readers_;  // By storage; ascending.
  std::vector<ValueIndex> order_;  // Storages, in the order of their first savers.
};

}  // namespace

std::vector<HeldRest> FindHeldRests(const Model::Impl& model, const ModelFacts& facts,
                                    Autograd autograd) {
  return RestFinder(model, facts, autograd).Find();
}

}  // namespace ckplan
