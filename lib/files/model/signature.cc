#include "lib/files/model/signature.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/files/model/module_calls.h"

namespace ckplan {

namespace {

constexpr std::string_view kInputKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr std::string_view kWholeSignature = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr std::string_view kFoldedFrom = "pkg.onnxscript.optimizer.folded_from";
constexpr std::string_view kParameterKind = "PARAMETER";
constexpr std::string_view kBufferKind = "BUFFER";
constexpr std::string_view kCounterName = "num_batches_tracked";
constexpr Bytes kCounterBytes{8};

// A line of the graph's signature, such as "p_conv_weight: PARAMETER target='conv.weight'".
struct SignatureLine {
  std::string_view kind;
  std::string_view target;
};

// Reads the lines with a target. More words may follow their kinds.
std::vector<SignatureLine> LinesOf(std::string_view text) {
  constexpr std::string_view kTargetIs = " target='";
  std::vector<SignatureLine> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t kind = line.find(": ");
    const size_t target = line.find(kTargetIs);
    if (kind == line.npos || target == line.npos || target < kind + 2) continue;
    const std::string_view name = line.substr(target + kTargetIs.size());
    lines.push_back({line.substr(kind + 2, target - kind - 2), name.substr(0, name.find('\''))});
  }
  return lines;
}

class SignatureReader {
 public:
  explicit SignatureReader(Model::Impl& model) : model_(model) {}

  void Read() {
    const onnx::GraphProto& graph = model_.proto->graph();
    for (const auto& property : graph.metadata_props()) {
      if (property.key() == kWholeSignature) ReadWhole(property.value());
    }
    for (const onnx::ValueInfoProto& info : graph.value_info()) ReadKind(info);
    if (parameters_.empty()) return;
    for (const onnx::ValueInfoProto& info : graph.value_info()) ReadFolding(info);
    for (ModelValue& value : model_.values) {
      if (value.source != ModelValue::Source::kInitializer) continue;
      value.signature = parameters_.contains(value.name) ? ModelValue::Signature::kParameter
                                                         : ModelValue::Signature::kConstant;
    }
    model_.has_signature = true;
  }

 private:
  void ReadWhole(std::string_view text) {
    for (const SignatureLine& line : LinesOf(text)) {
      if (line.kind == kParameterKind) parameters_.emplace(line.target);
    }
  }

  void ReadKind(const onnx::ValueInfoProto& info) {
    for (const auto& property : info.metadata_props()) {
      if (property.key() == kInputKind && property.value() == kParameterKind) {
        parameters_.insert(info.name());
      }
    }
  }

  void ReadFolding(const onnx::ValueInfoProto& info) {
    for (const auto& property : info.metadata_props()) {
      if (property.key() != kFoldedFrom) continue;
      for (const std::string& name : ParsePythonStrings(property.value()).value_or(Names())) {
        if (parameters_.contains(name)) parameters_.insert(info.name());
      }
    }
  }

  using Names = std::vector<std::string>;
  Model::Impl& model_;
  std::unordered_set<std::string> parameters_;
};

}  // namespace

void ReadSignature(Model::Impl& model) { SignatureReader(model).Read(); }

std::vector<SignatureBuffer> BuffersOfSignature(const Model::Impl& model) {
  std::vector<SignatureBuffer> buffers;
  if (!model.is_captured) return buffers;
  std::unordered_map<std::string_view, Bytes> in_file;
  for (const ModelValue& value : model.values) {
    if (value.source == ModelValue::Source::kInitializer) in_file.emplace(value.name, value.bytes);
  }
  for (const auto& property : model.proto->graph().metadata_props()) {
    if (property.key() != kWholeSignature) continue;
    for (const SignatureLine& line : LinesOf(property.value())) {
      if (line.kind != kBufferKind) continue;
      if (const auto found = in_file.find(line.target); found != in_file.end()) {
        buffers.push_back({std::string(line.target), found->second});
      } else if (line.target.ends_with(kCounterName)) {
        buffers.push_back({std::string(line.target), kCounterBytes});
      }
    }
  }
  return buffers;
}

}  // namespace ckplan
