#include "lib/files/model/eager_notes.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lib/files/model/facts.h"
#include "lib/files/model/operation_edits.h"
#include "lib/problem/ops/backward_reads.h"

namespace ckplan {

namespace {

constexpr std::string_view kHasNotes = "ckplan.eager";
constexpr std::string_view kRequiresGrad = "ckplan.requires_grad";
constexpr std::string_view kInPlace = "ckplan.in_place";
constexpr std::string_view kView = "view";
constexpr std::string_view kCopies = "ckplan.copies";

template <typename Message>
std::string_view NoteOf(const Message& message, std::string_view key) {
  for (const auto& property : message.metadata_props()) {
    if (property.key() == key) return property.value();
  }
  return {};
}

// Reads "0,2". Skips what is not a number.
std::vector<size_t> Positions(std::string_view text) {
  std::vector<size_t> positions;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    size_t position = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), position);
    if (read.ec == std::errc() && read.ptr == word.data() + word.size()) {
      positions.push_back(position);
    }
  }
  return positions;
}

class NoteReader {
 public:
  explicit NoteReader(Model::Impl& model) : model_(model), made_(model) {}

  void Read() {
    ReadFrozen();
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const std::string_view note = NoteOfOperation(i, kInPlace);
      if (note.empty()) continue;
      made_.SetAttribute(model_.operations[i], std::string(kInPlaceAttribute),
                         note == kView ? kInPlaceOnView : 1);
    }
    CopyInputs();
  }

 private:
  std::string_view NoteOfOperation(size_t index, std::string_view key) const {
    const ModelOperation& operation = model_.operations[index];
    const onnx::GraphProto& graph = model_.proto->graph();
    if (operation.file_node >= graph.node_size()) return {};
    return NoteOf(graph.node(operation.file_node), key);
  }

  void ReadFrozen() {
    std::unordered_set<std::string_view> frozen;
    for (const onnx::ValueInfoProto& info : model_.proto->graph().value_info()) {
      if (NoteOf(info, kRequiresGrad) == "False") frozen.insert(info.name());
    }
    for (ModelValue& value : model_.values) {
      if (value.source == ModelValue::Source::kInitializer && frozen.contains(value.name)) {
        value.is_frozen = true;
      }
    }
  }

  // ---- Copies -----------------------------------------------------------------------------------

  void CopyInputs() {
    const ModelFacts facts = FindFacts(model_);
    std::vector<int> readers(model_.values.size());
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      if (!facts.operations[i].is_live || facts.operations[i].is_view) continue;
      for (const ValueIndex input : model_.operations[i].inputs) {
        if (input != kNoValue) ++readers[static_cast<size_t>(facts.value(input).root)];
      }
    }
    const size_t operations = model_.operations.size();
    for (size_t i = 0; i < operations; ++i) {
      for (const size_t position : Positions(NoteOfOperation(i, kCopies))) {
        const ValueIndex input = model_.operations[i].input(position);
        if (input == kNoValue || !facts.operations[i].is_live) continue;
        // The last reader uses the existing tensor.
        int& left = readers[static_cast<size_t>(facts.value(input).root)];
        if (left < 2 || !IsMoved(facts, input)) continue;
        --left;
        model_.operations[i].inputs[position] = CopyFor(facts, i, input);
      }
    }
    made_.Insert();
  }

  // True if one operation only moved the value to other places in memory.
  bool IsMoved(const ModelFacts& facts, ValueIndex value) const {
    const ValueFacts& own = facts.value(value);
    if (!own.is_batch) return false;
    const ModelValue& root = model_.value(own.root);
    if (root.source != ModelValue::Source::kOperation) return false;
    const auto producer = static_cast<size_t>(root.producer);
    return facts.operations[producer].rule->is_movement() &&
           model_.operations[producer].outputs.size() == 1;
  }

  // Repeats the movement that produced the value, and the views in between, before the reader.
  ValueIndex CopyFor(const ModelFacts& facts, size_t reader, ValueIndex value) {
    const auto producer = static_cast<size_t>(model_.value(value).producer);
    const ModelOperation& operation = model_.operations[producer];
    std::vector<ValueIndex> inputs = operation.inputs;
    if (facts.operations[producer].is_view) inputs[0] = CopyFor(facts, reader, inputs[0]);
    const std::string suffix = " for " + model_.operations[reader].name;
    const onnx::NodeProto node = *operation.node;
    const std::string name = operation.name + suffix;
    const int64_t opset = operation.opset;
    const ValueIndex copy = made_.NewValue(model_.value(value).name + suffix, value);
    made_.InsertBefore(reader, node, name, std::move(inputs), {copy}, opset);
    return copy;
  }

  Model::Impl& model_;
  OperationEdits made_;
};

}  // namespace

bool HasEagerNotes(const Model::Impl& model) {
  return !NoteOf(model.proto->graph(), kHasNotes).empty();
}

void ReadEagerNotes(Model::Impl& model) {
  if (!HasEagerNotes(model)) return;
  model.tells_in_place = true;
  NoteReader(model).Read();
}

}  // namespace ckplan
