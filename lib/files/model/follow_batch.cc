#include "lib/files/model/follow_batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace ckplan {
namespace {

// The batch lies between two strides: consecutive samples are `low` elements apart, and all samples
// together are `high` elements.
struct Strides {
  int64_t low = 1;
  int64_t high = 1;
};

Strides StridesOf(const Dims& dims, size_t axis) {
  const int64_t within = ElementsWithin(dims, axis);
  return {within, within * dims[axis]};
}

// The batch's strides in an array with the batch at this place.
Strides SamplesOf(const Dims& dims, BatchPlace place, int64_t batch) {
  const int64_t low = ElementsWithin(dims, place.axis) * place.step;
  return {low, low * batch};
}

// True if the batch is a part of the axis, or all of it.
bool ContainsBatch(const Strides& axis, const Strides& batch) {
  return batch.low % axis.low == 0 && axis.high % batch.high == 0;
}

bool HasTail(const Dims& dims, size_t after, const Dims& other, size_t other_after) {
  return std::equal(dims.begin() + static_cast<std::ptrdiff_t>(after) + 1, dims.end(),
                    other.begin() + static_cast<std::ptrdiff_t>(other_after) + 1, other.end());
}

bool HasHead(const Dims& dims, size_t until, const Dims& other, size_t other_until) {
  return until == other_until &&
         std::equal(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(until), other.begin());
}

// Chooses among several axes that consist only of the batch: adjacent axes of size 1.
std::optional<size_t> ChooseOwn(const std::vector<size_t>& own, const Dims& to, size_t before,
                                const Strides& batch) {
  if (own.empty()) return std::nullopt;
  if (own.size() == 1) return own.front();
  if (std::find(own.begin(), own.end(), before) != own.end()) return before;
  const bool is_outermost = StridesOf(to, 0).high == batch.high;
  return is_outermost ? std::optional(own.front()) : std::nullopt;
}

}  // namespace

int64_t ElementsWithin(const Dims& dims, size_t axis) {
  int64_t elements = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) elements *= dims[i];
  return elements;
}

std::optional<BatchPlace> PlaceOnAxis(const Dims& from, BatchPlace place, const Dims& to,
                                      size_t axis, int64_t batch) {
  const Strides within = StridesOf(to, axis);
  const Strides samples = SamplesOf(from, place, batch);
  if (!ContainsBatch(within, samples)) return std::nullopt;
  return BatchPlace{axis, samples.low / within.low};
}

std::optional<BatchPlace> PlaceAfterReshape(const Dims& from, BatchPlace place, const Dims& to,
                                            int64_t batch) {
  const Strides samples = SamplesOf(from, place, batch);
  std::vector<size_t> own;
  std::vector<BatchPlace> around;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == batch && StridesOf(to, i).low == samples.low) own.push_back(i);
    if (const auto found = PlaceOnAxis(from, place, to, i, batch)) around.push_back(*found);
  }
  if (!own.empty()) {
    const auto chosen = ChooseOwn(own, to, place.axis, samples);
    return chosen ? std::optional(BatchPlace{*chosen, 1}) : std::nullopt;
  }
  if (around.size() == 1) return around.front();
  if (around.size() != 2) return std::nullopt;
  // A batch of 1 ends one axis or starts the other.
  const BatchPlace& before = around.front();
  const BatchPlace& after = around.back();
  if (after.axis + 1 == to.size()) return before;
  const bool is_same_before = HasHead(to, after.axis, from, place.axis);
  const bool is_same_after = place.step == 1 && HasTail(to, before.axis, from, place.axis);
  if (is_same_before == is_same_after) return std::nullopt;
  return is_same_before ? after : before;
}

namespace {

using onnx::NodeProto;

const ModelValue* ValueAt(const Model::Impl& model, const std::vector<ValueIndex>& inputs,
                          size_t i) {
  return i < inputs.size() && inputs[i] != kNoValue ? &model.value(inputs[i]) : nullptr;
}

std::optional<size_t> AxisOf(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

NodeProto WithInts(const NodeProto& node, std::string_view name, const std::vector<int64_t>& list) {
  NodeProto changed = node;
  for (onnx::AttributeProto& attribute : *changed.mutable_attribute()) {
    if (attribute.name() != name) continue;
    attribute.clear_ints();
    for (const int64_t number : list) attribute.add_ints(number);
  }
  return changed;
}

// Operators that create values from a shape, or repeat an input that is the same for every sample,
// with the operand that is the shape.
struct ProducerRow {
  std::string_view op;
  size_t shape_operand;
};
constexpr ProducerRow kProducers[] = {{"ConstantOfShape", 0}, {"Expand", 1}, {"Tile", 1}};

const ProducerRow* FindProducer(const NodeProto& node) {
  const auto found = std::find_if(std::begin(kProducers), std::end(kProducers),
                                  [&](const auto& row) { return node.op_type() == row.op; });
  return found == std::end(kProducers) ? nullptr : found;
}

bool IsRandomProducer(const NodeProto& node) {
  return node.op_type() == "RandomNormal" || node.op_type() == "RandomUniform";
}

}  // namespace

NodeProto ConstantNode(const NodeProto& source, std::string_view what,
                       const std::vector<int64_t>& numbers) {
  NodeProto node;
  node.set_op_type("Constant");
  node.add_output(fmt::format("{}:{}", source.output(0), what));
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() =
      MakeTensor({onnx::TensorProto::INT64, {static_cast<int64_t>(numbers.size())}, numbers, {}});
  return node;
}

NodeProto ExpandNode(const NodeProto& source, int operand, std::string_view what) {
  NodeProto node;
  node.set_op_type("Expand");
  node.add_input(source.input(operand));
  node.add_input(fmt::format("{}:{}", source.output(0), what));
  node.add_output(fmt::format("{}:{}:expanded", source.output(0), what));
  return node;
}

BatchFollower::BatchFollower(const Model::Impl& in_file, BatchSizes sizes) : sizes_(sizes) {
  for (const ModelValue& value : in_file.values) in_file_.emplace(value.name, &value);
}

const ModelValue* BatchFollower::ValueInFile(const std::string& name) const {
  const auto found = in_file_.find(name);
  return found == in_file_.end() ? nullptr : found->second;
}

std::vector<size_t> BatchFollower::ChangedAxes(const ModelValue& value) const {
  const ModelValue* const before = ValueInFile(value.name);
  std::vector<size_t> axes;
  if (before == nullptr || !before->has_shape || !value.has_shape) return axes;
  for (size_t i = 0; i < std::min(value.dims.size(), before->dims.size()); ++i) {
    if (value.dims[i] != before->dims[i]) axes.push_back(i);
  }
  return axes;
}

std::optional<BatchPlace> BatchFollower::PlaceIn(const ModelValue& value, size_t axis) const {
  const int64_t before = ValueInFile(value.name)->dims[axis];
  const bool is_multiple = before > 0 && before % sizes_.in_file == 0 &&
                           value.dims[axis] % sizes_.wanted == 0 &&
                           before / sizes_.in_file == value.dims[axis] / sizes_.wanted;
  if (!is_multiple) return std::nullopt;
  const auto known = steps_.find(value.name);
  return BatchPlace{axis, known == steps_.end() ? before / sizes_.in_file : known->second};
}

const ConstantValue* BatchFollower::FixedOperand(const Model::Impl& model,
                                                 const std::vector<ValueIndex>& inputs,
                                                 size_t operand) const {
  const ModelValue* const value = ValueAt(model, inputs, operand);
  if (value == nullptr || value->constant == nullptr || value->constant->is_float()) return nullptr;
  const ModelValue* const before = ValueInFile(value->name);
  if (before == nullptr || before->constant == nullptr) return nullptr;
  return before->constant->ints == value->constant->ints ? value->constant.get() : nullptr;
}

FollowedNode BatchFollower::Follow(const Model::Impl& model, const NodeProto& node,
                                   const std::vector<ValueIndex>& inputs,
                                   const std::string& prefix) {
  FollowedNode followed;
  if (!IsStandard(node) || node.output_size() == 0) return followed;
  const std::string& op = node.op_type();
  const std::string output = prefix + node.output(0);
  if (taken_.contains(output)) {
    ReplaceRecordedShape(model, node, inputs, &followed);
  } else if (op == "Reshape") {
    FollowReshape(model, node, inputs, output, &followed);
  } else if (op == "Expand") {
    FollowAligned(model, inputs, 1, &followed);
  } else if (op == "Resize") {
    FollowAligned(model, inputs, 3, &followed);
  } else if (op == "MaxUnpool") {
    FollowAligned(model, inputs, 2, &followed);
  } else if (op == "Slice") {
    FollowSlice(model, node, inputs, &followed);
  } else if (op == "Gather") {
    CheckGather(model, node, inputs, &followed);
  } else if (op == "Concat") {
    FollowConcat(model, node, inputs, &followed);
  } else if (op == "LSTM" || op == "GRU" || op == "RNN") {
    FollowStates(model, node, inputs, &followed);
  }
  return followed;
}

void BatchFollower::FollowReshape(const Model::Impl& model, const NodeProto& node,
                                  const std::vector<ValueIndex>& inputs, const std::string& output,
                                  FollowedNode* followed) {
  const ModelValue* const data = ValueAt(model, inputs, 0);
  const ModelValue* const made = ValueInFile(output);
  if (data == nullptr || made == nullptr || !made->has_shape) return;
  const std::vector<size_t> changed = ChangedAxes(*data);
  if (changed.empty()) return;
  const ConstantValue* const operand = FixedOperand(model, inputs, 1);
  if (operand == nullptr) return;
  std::vector<int64_t> shape = operand->ints;
  if (shape.size() != made->dims.size()) return;
  const auto refuse = [&] {
    followed->fault = fmt::format("its shape [{}] does not determine which dimension is the batch",
                                  fmt::join(shape, ","));
  };
  const Dims& before = ValueInFile(data->name)->dims;
  const auto from = changed.size() == 1 ? PlaceIn(*data, changed.front()) : std::nullopt;
  const auto has_elements = [](const Dims& dims) {
    return std::none_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 0; });
  };
  if (!from || !has_elements(before) || !has_elements(made->dims)) return refuse();
  const auto to = PlaceAfterReshape(before, *from, made->dims, sizes_.in_file);
  const auto open = std::find(shape.begin(), shape.end(), -1);
  const bool is_own = to && to->step == 1 && made->dims[to->axis] == sizes_.in_file;
  if (!is_own && open != shape.end()) {
    // The dimension that the file leaves open takes the batch, if the batch can be there.
    const auto place = PlaceOnAxis(before, *from, made->dims,
                                   static_cast<size_t>(open - shape.begin()), sizes_.in_file);
    if (place) {
      steps_[output] = place->step;
      return;
    }
  }
  if (!to) return refuse();
  // A 0 copies the input's dimension, which is right only if the batch stays in place.
  const bool copies = IntAttribute(node, "allowzero", 0) == 0;
  for (size_t i = 0; copies && i < std::min(shape.size(), before.size()); ++i) {
    if (shape[i] == 0 && (i == from->axis) != (i == to->axis)) return refuse();
  }
  steps_[output] = to->step;
  int64_t& size = shape[to->axis];
  if (size <= 0) return;
  size = size / sizes_.in_file * sizes_.wanted;
  followed->lists.push_back({1, std::move(shape)});
}

// Handles a shape of the input's dimensions, counted from the last one.
void BatchFollower::FollowAligned(const Model::Impl& model, const std::vector<ValueIndex>& inputs,
                                  size_t operand, FollowedNode* followed) const {
  const ModelValue* const data = ValueAt(model, inputs, 0);
  const ConstantValue* const shape = FixedOperand(model, inputs, operand);
  if (data == nullptr || shape == nullptr) return;
  std::vector<int64_t> changed = shape->ints;
  for (const size_t axis : ChangedAxes(*data)) {
    const size_t from_last = data->dims.size() - axis;
    if (from_last > changed.size()) continue;
    int64_t& size = changed[changed.size() - from_last];
    if (size == ValueInFile(data->name)->dims[axis]) size = data->dims[axis];
  }
  if (changed != shape->ints) followed->lists.push_back({operand, std::move(changed)});
}

void BatchFollower::FollowSlice(const Model::Impl& model, const NodeProto& node,
                                const std::vector<ValueIndex>& inputs,
                                FollowedNode* followed) const {
  const ModelValue* const data = ValueAt(model, inputs, 0);
  if (data == nullptr) return;
  const std::vector<size_t> changed = ChangedAxes(*data);
  if (changed.empty()) return;
  // Before operator set 10, the limits are attributes.
  const bool has_attributes = inputs.size() == 1;
  const auto list = [&](size_t operand, const char* name) -> std::optional<std::vector<int64_t>> {
    if (has_attributes) return IntsAttribute(node, name);
    const ModelValue* const value = ValueAt(model, inputs, operand);
    if (value == nullptr) return std::vector<int64_t>();
    if (value->constant == nullptr || value->constant->is_float()) return std::nullopt;
    return value->constant->ints;
  };
  const auto starts = list(1, "starts");
  auto ends = list(2, "ends");
  const auto axes = list(3, "axes");
  const auto steps = list(4, "steps");
  if (!starts || !ends || !axes || !steps || starts->size() != ends->size()) return;
  if (!has_attributes && FixedOperand(model, inputs, 2) == nullptr) return;
  bool is_changed = false;
  for (size_t i = 0; i < ends->size(); ++i) {
    const auto axis =
        AxisOf(i < axes->size() ? (*axes)[i] : static_cast<int64_t>(i), data->dims.size());
    if (!axis || std::find(changed.begin(), changed.end(), *axis) == changed.end()) continue;
    const bool is_forwards = i >= steps->size() || (*steps)[i] == 1;
    if (!is_forwards || (*starts)[i] != 0 || (*ends)[i] < ValueInFile(data->name)->dims[*axis]) {
      followed->fault = "it takes a part of the batch";
      return;
    }
    if ((*ends)[i] >= data->dims[*axis]) continue;
    (*ends)[i] = data->dims[*axis];
    is_changed = true;
  }
  if (!is_changed) return;
  if (has_attributes) {
    followed->node = WithInts(node, "ends", *ends);
  } else {
    followed->lists.push_back({2, std::move(*ends)});
  }
}

// A constant index selects samples, such as the only one of a batch of 1.
void BatchFollower::CheckGather(const Model::Impl& model, const NodeProto& node,
                                const std::vector<ValueIndex>& inputs,
                                FollowedNode* followed) const {
  const ModelValue* const data = ValueAt(model, inputs, 0);
  if (data == nullptr || FixedOperand(model, inputs, 1) == nullptr) return;
  const auto axis = AxisOf(IntAttribute(node, "axis", 0), data->dims.size());
  const std::vector<size_t> changed = ChangedAxes(*data);
  if (!axis || std::find(changed.begin(), changed.end(), *axis) == changed.end()) return;
  followed->fault = "it takes a part of the batch";
}

void BatchFollower::FollowConcat(const Model::Impl& model, const NodeProto& node,
                                 const std::vector<ValueIndex>& inputs,
                                 FollowedNode* followed) const {
  // The operands' dimensions must match those of the first operand with the batch.
  const ModelValue* with_batch = nullptr;
  for (size_t i = 0; i < inputs.size() && with_batch == nullptr; ++i) {
    const ModelValue* const value = ValueAt(model, inputs, i);
    if (value != nullptr && !ChangedAxes(*value).empty()) with_batch = value;
  }
  if (with_batch == nullptr) return;
  const size_t rank = with_batch->dims.size();
  const auto joined = AxisOf(IntAttribute(node, "axis", 1), rank);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModelValue* const value = ValueAt(model, inputs, i);
    if (value == nullptr || !value->has_shape || value->dims.size() != rank) continue;
    std::vector<int64_t> dims = value->dims;
    for (const size_t axis : ChangedAxes(*with_batch)) {
      if (axis != joined && dims[axis] == 1) dims[axis] = with_batch->dims[axis];
    }
    if (dims != value->dims) followed->expanded.push_back({i, std::move(dims)});
  }
}

// The initial states are [directions, batch, units] if the input is [steps, batch, features].
void BatchFollower::FollowStates(const Model::Impl& model, const NodeProto& node,
                                 const std::vector<ValueIndex>& inputs,
                                 FollowedNode* followed) const {
  const ModelValue* const data = ValueAt(model, inputs, 0);
  if (data == nullptr) return;
  const std::vector<size_t> changed = ChangedAxes(*data);
  if (IntAttribute(node, "layout", 0) != 0 || changed != std::vector<size_t>{1}) return;
  constexpr size_t kFirstState = 5;
  constexpr size_t kLastState = 6;
  for (size_t i = kFirstState; i <= kLastState; ++i) {
    const ModelValue* const state = ValueAt(model, inputs, i);
    if (state == nullptr || !state->has_shape || state->dims.size() != 3) continue;
    if (state->dims[1] == data->dims[1]) continue;
    if (state->dims[1] != 1) {
      followed->fault = fmt::format("its initial state \"{}\" has the old batch", state->name);
      return;
    }
    followed->expanded.push_back({i, {state->dims[0], data->dims[1], state->dims[2]}});
  }
}

// An Expand may get the batch from its input, and then its shape does not start with the batch.
void BatchFollower::ReplaceRecordedShape(const Model::Impl& model, const NodeProto& node,
                                         const std::vector<ValueIndex>& inputs,
                                         FollowedNode* followed) const {
  const ProducerRow* const producer = FindProducer(node);
  const ConstantValue* const operand =
      producer == nullptr ? nullptr : FixedOperand(model, inputs, producer->shape_operand);
  std::vector<int64_t> shape = IsRandomProducer(node) ? IntsAttribute(node, "shape")
                               : operand != nullptr   ? operand->ints
                                                      : std::vector<int64_t>();
  if (shape.empty() || shape.front() != sizes_.in_file) return;
  shape.front() = sizes_.wanted;
  if (operand == nullptr) {
    followed->node = WithInts(node, "shape", shape);
  } else {
    followed->lists.push_back({producer->shape_operand, std::move(shape)});
  }
}

bool BatchFollower::ReadsBatch(const Model::Impl& model, const ModelOperation& operation) const {
  return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](ValueIndex input) {
    return input != kNoValue && !ChangedAxes(model.value(input)).empty();
  });
}

// A batch of 1 also matches a constant with the old batch, and then the result has the old batch.
bool BatchFollower::HasOldBatch(const Model::Impl& model, const ModelOperation& operation,
                                const ModelValue& output) const {
  if (sizes_.wanted != 1 || !ChangedAxes(output).empty()) return false;
  return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](ValueIndex input) {
    if (input == kNoValue) return false;
    const ModelValue& read = model.value(input);
    const std::vector<size_t> changed = ChangedAxes(read);
    return read.dims.size() == output.dims.size() &&
           std::any_of(changed.begin(), changed.end(), [&](size_t axis) {
             return read.dims[axis] == 1 && output.dims[axis] == sizes_.in_file;
           });
  });
}

std::string BatchFollower::SetOutputs(const Model::Impl& model, const ModelOperation& operation) {
  for (const ValueIndex output : operation.outputs) {
    if (output == kNoValue) continue;
    const ModelValue& value = model.value(output);
    const ModelValue* const before = ValueInFile(value.name);
    if (before == nullptr || !before->has_shape || !value.has_shape) continue;
    if (before->dims.size() != value.dims.size()) {
      return fmt::format("its output \"{}\" has {} dimensions instead of {}", value.name,
                         value.dims.size(), before->dims.size());
    }
    if (HasOldBatch(model, operation, value)) return "an operand has the old batch";
    // An output axis with the size of an input's axis holds the batch at the same place.
    for (const size_t axis : ChangedAxes(value)) {
      for (const ValueIndex input : operation.inputs) {
        if (input == kNoValue || steps_.contains(value.name)) continue;
        const ModelValue& read = model.value(input);
        const auto step = steps_.find(read.name);
        if (step == steps_.end()) continue;
        for (const size_t read_axis : ChangedAxes(read)) {
          if (ValueInFile(read.name)->dims[read_axis] == before->dims[axis]) {
            steps_[value.name] = step->second;
          }
        }
      }
    }
  }
  return "";
}

std::string BatchFollower::ChangeDeclared(const Model::Impl& model, const ModelOperation& operation,
                                          onnx::TypeProto* type) const {
  const auto with_batch =
      std::find_if(operation.inputs.begin(), operation.inputs.end(), [&](ValueIndex input) {
        return input != kNoValue && !ChangedAxes(model.value(input)).empty();
      });
  if (with_batch == operation.inputs.end() || !type->has_tensor_type()) return "";
  const ModelValue& read = model.value(*with_batch);
  auto* const shape = type->mutable_tensor_type()->mutable_shape();
  const bool is_first = ChangedAxes(read) == std::vector<size_t>{0} && shape->dim_size() > 0 &&
                        shape->dim(0).dim_value() == ValueInFile(read.name)->dims[0];
  if (!is_first) return "only the file knows the shape of its output, with the old batch";
  shape->mutable_dim(0)->set_dim_value(read.dims[0]);
  return "";
}

void BatchFollower::RecordOldConstants(const Model::Impl& model, const ModelOperation& operation) {
  if (sizes_.in_file == 1) return;  // A dimension of 1 matches any batch, or is expanded.
  std::unordered_set<int32_t> seen;
  std::vector<const ModelOperation*> open = {&operation};
  while (!open.empty()) {
    const ModelOperation& at = *open.back();
    open.pop_back();
    for (const ValueIndex input : at.inputs) {
      if (input == kNoValue) continue;
      const ModelValue& value = model.value(input);
      if (value.producer < 0 || !seen.insert(value.producer).second) continue;
      const ModelOperation& producer = model.operations[static_cast<size_t>(value.producer)];
      const bool has_old_batch =
          value.has_shape && !value.dims.empty() && value.dims.front() == sizes_.in_file;
      const bool makes = producer.is_standard() && (FindProducer(*producer.node) != nullptr ||
                                                    IsRandomProducer(*producer.node));
      if (makes && has_old_batch) {
        found_new_constants_ = taken_.insert(value.name).second || found_new_constants_;
      } else if (ChangedAxes(value).empty()) {
        open.push_back(&producer);
      }
    }
  }
}

}  // namespace ckplan
