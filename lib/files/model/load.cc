// Implements LoadModel, which turns a file into a Model: see model.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/constant_batch.h"
#include "lib/files/model/dead_ends.h"
#include "lib/files/model/eager_notes.h"
#include "lib/files/model/expand.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/fuse_attention.h"
#include "lib/files/model/hinted_types.h"
#include "lib/files/model/infer_types.h"
#include "lib/files/model/input_uses.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/module_calls.h"
#include "lib/files/model/parse_file.h"
#include "lib/files/model/restore.h"
#include "lib/files/model/scope.h"
#include "lib/files/model/signature.h"
#include "lib/files/model/step_part.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/problem/ops/op_hint.h"
#include "lib/problem/ops/op_spec.h"
#include "onnx/onnx_pb.h"

namespace ckplan {
namespace {

// ---- Names ----

constexpr size_t kMaxNameBytes = size_t{16} << 10;

class LongestName {
 public:
  void Model(const onnx::ModelProto& model) {
    Graph(model.graph());
    for (const onnx::FunctionProto& function : model.functions()) {
      Consider(function.name());
      Consider(function.domain());
      ConsiderAll(function.input());
      ConsiderAll(function.output());
      Declared(function.value_info());
      Nodes(function.node());
    }
  }

  const std::string& found() const { return *longest_; }

 private:
  void Consider(const std::string& name) {
    if (name.size() > longest_->size()) longest_ = &name;
  }
  void ConsiderAll(const google::protobuf::RepeatedPtrField<std::string>& names) {
    for (const std::string& name : names) Consider(name);
  }

  void Declared(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos) {
    for (const onnx::ValueInfoProto& info : infos) {
      Consider(info.name());
      for (const auto& dim : info.type().tensor_type().shape().dim()) Consider(dim.dim_param());
    }
  }

  void Nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (const onnx::NodeProto& node : nodes) {
      Consider(node.name());
      Consider(node.op_type());
      Consider(node.domain());
      ConsiderAll(node.input());
      ConsiderAll(node.output());
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        Consider(attribute.name());
        if (attribute.has_g()) Graph(attribute.g());
        for (const onnx::GraphProto& graph : attribute.graphs()) Graph(graph);
      }
    }
  }

  void Graph(const onnx::GraphProto& graph) {
    Consider(graph.name());
    Declared(graph.input());
    Declared(graph.output());
    Declared(graph.value_info());
    for (const onnx::TensorProto& tensor : graph.initializer()) Consider(tensor.name());
    Nodes(graph.node());
  }

  const std::string empty_;
  const std::string* longest_ = &empty_;
};

// Names are copied, compared and joined, so long names are costly. Fails with kUnsupported if the
// name of a graph, node, tensor, dimension, operator or domain is longer than 16 KiB.
Result<Done> CheckNames(const onnx::ModelProto& model, const std::string& file) {
  LongestName longest;
  longest.Model(model);
  const std::string& name = longest.found();
  if (name.size() <= kMaxNameBytes) return Done{};
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("{}: the name \"{}\" is {} bytes long, more than {}; shorten it",
                               file, ShortName(name), name.size(), kMaxNameBytes));
}

// ---- Activation types ----

constexpr int64_t kFloat32Bytes = 4;
constexpr int64_t kBFloat16Bytes = 2;

// True for float32, float16, bfloat16 and float64, whose size depends on the activation type.
bool FollowsActivationType(int32_t elem_type) {
  return elem_type == onnx::TensorProto::FLOAT || elem_type == onnx::TensorProto::FLOAT16 ||
         elem_type == onnx::TensorProto::BFLOAT16 || elem_type == onnx::TensorProto::DOUBLE;
}

// Sets the sizes of float values that depend on the batch to those of `type`. Their `elem_type`
// stays, so that the same operations are views. Fails with kInvalidInput if a size overflows.
Result<Done> SetActivationType(Model::Impl& model, ActivationType type) {
  model.activation_type = type;
  if (type == ActivationType::kOfModel) return Done{};
  const int64_t element = type == ActivationType::kFloat32 ? kFloat32Bytes : kBFloat16Bytes;
  const ModelFacts facts = FindFacts(model);
  for (size_t i = 0; i < model.values.size(); ++i) {
    ModelValue& value = model.values[i];
    if (!facts.values[i].is_batch || !FollowsActivationType(value.elem_type)) continue;
    const auto bytes =
        CheckedMul(ElementCount(value.dims).value_or(kMaxTotalBytes.count()), element);
    if (!bytes || *bytes > kMaxTotalBytes.count()) {
      return MakeError(
          ErrorCode::kInvalidInput,
          fmt::format("{}: \"{}\" is too large for any machine; use smaller dimensions",
                      model.identity.name, value.name));
    }
    value.bytes = Bytes(*bytes);
  }
  return Done{};
}

// ---- Frozen parameters ----

// A frozen parameter occupies memory but has no gradient and no optimizer state: the base of a
// model that LoRA adapts, or a backbone. lib/files/model/facts.h derives which values need not be
// saved, and which nodes have no backward.

// Marks the parameters whose initializers or Constants match the patterns. A pattern may also match
// parameters that are never trained, such as scales of quantized weights. Fails with kUsage if a
// pattern matches no parameter.
Result<Done> FreezeParameters(Model::Impl& model, const NamePatterns& patterns) {
  if (patterns.empty()) return Done{};
  const ModelFacts facts = FindFacts(model);
  const std::vector<ValueIndex>& trained = facts.trained;
  std::vector<NamedThing> things;
  for (const auto* list : {&trained, &facts.counted}) {
    for (const ValueIndex value : *list) things.push_back({{model.value(value).name}, ""});
  }
  Result<std::vector<bool>> chosen = ChooseByName(patterns, things, "trained parameter");
  if (!chosen.ok()) {
    Error error = std::move(chosen).error();
    error.message.insert(0, model.identity.name + ": ");
    return error;
  }
  for (size_t i = 0; i < trained.size(); ++i) model.value(trained[i]).is_frozen = (*chosen)[i];
  return Done{};
}

// ---- Sizes of 0 ----

bool AreAllOutputsEmpty(const Model::Impl& model) {
  return std::all_of(model.graph_outputs.begin(), model.graph_outputs.end(),
                     [&model](ValueIndex output) {
                       const Dims& dims = model.value(output).dims;
                       return std::find(dims.begin(), dims.end(), 0) != dims.end();
                     });
}

// A cache may be empty, but the batch may not. Fails with kUsage if a given size of 0 makes all
// outputs empty.
Result<Done> CheckZeroSizes(const Model::Impl& model, const LoadOptions& options) {
  std::string subject;
  for (const auto& [name, shape] : options.input_shapes) {
    if (std::find(shape.begin(), shape.end(), 0) == shape.end()) continue;
    subject = fmt::format("input \"{}\" cannot have a dimension of 0", ShortName(name));
  }
  for (const auto& [name, size] : options.dims) {
    if (size == 0) subject = fmt::format("dimension \"{}\" cannot be 0", ShortName(name));
  }
  if (subject.empty() || !AreAllOutputsEmpty(model)) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: {}: every output would be empty; give it a size of at least 1",
                               model.identity.name, subject));
}

// ---- Loading ----

// Optimising exporters fold BatchNormalization into the convolution before it and name the new bias
// after the weight. Training such a model differs from training the original one.
bool HasFoldedBatchNorm(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node()) {
    if (node.op_type() == "BatchNormalization") return false;
  }
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Conv" || node.input_size() < 3) continue;
    if (node.input(2) == node.input(1) + "_bias") return true;
    const bool is_renamed = node.input(1).starts_with("onnx::Conv_");
    if (is_renamed && node.input(2).starts_with("onnx::Conv_")) return true;
  }
  return false;
}

// True if the exporter's optimizer folded a PyTorch normalisation into the node: the node still has
// the metadata of the normalisation.
bool HasFoldedNormalisation(const onnx::NodeProto& node) {
  const std::string& type = node.op_type();
  if (type != "Conv" && type != "ConvTranspose" && type != "Gemm") return false;
  const std::vector<std::string> classes = ClassesOf(node);
  return !classes.empty() && classes.back().find("_norm") != std::string::npos;
}

// Returns false if there are none.
bool WarnOfFoldedNormalisations(Model::Impl& model, const std::string& file) {
  std::vector<std::string> shown;
  for (const onnx::NodeProto& node : model.proto->graph().node()) {
    if (!HasFoldedNormalisation(node)) continue;
    shown.push_back(fmt::format("\"{}\"", ShortName(node.name())));
  }
  if (shown.empty()) return false;
  model.warnings.push_back(
      fmt::format("{}: {} folded into other nodes ({}): the plan is for a network without {}; "
                  "export with torch.onnx.export(..., optimize=False) to plan the original",
                  file,
                  shown.size() == 1 ? "a normalisation was"
                                    : fmt::format("{} normalisations were", shown.size()),
                  ShortList(shown, 3), shown.size() == 1 ? "it" : "them"));
  return true;
}

// Returns what the training tools of ONNX Runtime or ONNX added with this node; null if nothing.
const char* TrainingPart(const onnx::NodeProto& node) {
  if (node.op_type() == "Gradient") return "a backward";
  const std::string& type = node.op_type();
  if (node.domain() == "com.microsoft") {
    if (type.ends_with("Grad") || type == "YieldOp") return "a backward";
    if (type.starts_with("InPlaceAccumulator") || type.find("Optimizer") != std::string::npos) {
      return "an optimizer";
    }
  }
  return node.domain() == "ai.onnx.preview.training" ? "an optimizer" : nullptr;
}

bool WarnOfTraining(Model::Impl& model, const onnx::NodeProto& node, const std::string& name,
                    const std::string& file) {
  const char* const part = TrainingPart(node);
  if (part == nullptr) return false;
  model.warnings.push_back(fmt::format(
      "{}: node \"{}\" ({}) belongs to {}: the plan treats it as part of forward and adds a "
      "backward to it; export the model without its training graph",
      file, ShortName(name), ShortName(node.op_type()), part));
  return true;
}

// Warns about the first such node. Operations include those of used branches and functions.
void WarnOfBackward(Model::Impl& model, const std::string& file) {
  for (const onnx::NodeProto& node : model.proto->graph().node()) {
    if (WarnOfTraining(model, node, node.name(), file)) return;
  }
  for (const ModelOperation& operation : model.operations) {
    if (WarnOfTraining(model, *operation.node, operation.name, file)) return;
  }
}

void WarnOfNewerOperators(Model::Impl& model, const std::string& file) {
  const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (const auto& [domain, version] : model.identity.opsets) {
    const auto range = known.find(domain);
    if (range == known.end() || version <= range->second.second) continue;
    model.warnings.push_back(fmt::format(
        "{}: operator set {} of {} is newer than {}, the newest that ckplan knows, whose operators "
        "it "
        "uses instead; export for an older set if they changed",
        file, version, domain.empty() ? "ai.onnx" : ShortName(domain), range->second.second));
  }
}

void AddWarnings(Model::Impl& model, const std::string& file) {
  WarnOfBackward(model, file);
  WarnOfNewerOperators(model, file);
  if (WarnOfFoldedNormalisations(model, file)) return;
  if (HasFoldedBatchNorm(model.proto->graph())) {
    model.warnings.push_back(fmt::format(
        "{}: BatchNormalization looks folded into the convolutions: the plan is for a network "
        "without it; export with training mode kept to plan the original",
        file));
  }
}

// An open batch is an ordinary dimension: --batch 8 means -D N=8 or, if it has no name,
// --input-shape x=8,3.
Result<LoadOptions> WithOpenBatch(const onnx::GraphProto& graph, const InputUses& uses,
                                  const LoadOptions& options, const std::string& file) {
  if (options.batch == 0) return options;
  LoadOptions bound = options;
  if (SetNamelessBatch(graph, uses, &bound)) return bound;
  const std::string dim = OpenBatchDim(graph, uses);
  if (dim.empty()) return options;
  bound.batch = 0;
  const auto [found, is_new] = bound.dims.emplace(dim, options.batch);
  if (is_new || found->second == options.batch) return bound;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: the batch is the dimension {}, which cannot be both {} and {}",
                               file, ShortName(dim), found->second, options.batch));
}

// If a training graph can't be planned, the error first says that it is one.
Error TrainingGraphError(const onnx::NodeProto& node, const std::string& file,
                         const Error& reason) {
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{}: this is a training graph from ONNX Runtime: node \"{}\" ({}) belongs to {}; "
                  "plan the "
                  "model that it was made from",
                  file, ShortName(node.name()), ShortName(node.op_type()), TrainingPart(node)),
      {reason.message}};
}

Result<Model> LoadParsed(const std::string& path, const LoadOptions& options, ParsedFile parsed);

Result<Model> Load(const std::string& path, const LoadOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(ParsedFile parsed, ParseModelFile(path));
  std::optional<onnx::NodeProto> training;
  for (const onnx::NodeProto& node : parsed.proto->graph().node()) {
    if (!training && TrainingPart(node) != nullptr) training = node;
  }
  Result<Model> model = LoadParsed(path, options, std::move(parsed));
  if (model.ok() || !training || model.error().code == ErrorCode::kTimeout ||
      model.error().code == ErrorCode::kCheckFailed || !model.error().remedy.settings.empty()) {
    return model;
  }
  return TrainingGraphError(*training, std::filesystem::path(path).filename().string(),
                            model.error());
}

Result<std::vector<OpHint>> HintsIn(const LoadOptions& options, const std::string& file) {
  std::vector<OpHint> hints;
  for (const std::string& text : options.op_shapes) {
    Result<OpHint> hint = ParseOpHint(text);
    if (!hint.ok()) {
      Error error = std::move(hint).error();
      error.message.insert(0, file + ": ");
      return error;
    }
    hints.push_back(std::move(*hint));
  }
  return hints;
}

// Reads the model's part of the graph. Returns the options with the batch bound.
Result<LoadOptions> ExpandPart(Model::Impl* model, const LoadOptions& given,
                               const std::string& file) {
  const onnx::GraphProto& graph = model->proto->graph();
  CKPLAN_ASSIGN_OR_RETURN(const InputUses uses, FindInputUses(graph, given, model->part, file));
  CKPLAN_ASSIGN_OR_RETURN(LoadOptions options, WithOpenBatch(graph, uses, given, file));
  CKPLAN_ASSIGN_OR_RETURN(const BoundDims bound, BindDims(graph, uses, options, file));
  model->dims = bound.dims;
  if (options.batch > 0) {
    CKPLAN_RETURN_IF_ERROR(ExpandWithBatch(*model, bound, options.batch, file));
    return options;
  }
  if (!HasOtherShapes(bound)) model->constant_batch = ConstantBatch(bound);
  // If other dimensions are open, a first dimension above 1 is more likely a sequence.
  if (!bound.dims.empty() && model->constant_batch != 1) model->constant_batch.reset();
  CKPLAN_RETURN_IF_ERROR(ExpandGraph(*model, bound, file));
  return options;
}

// Warns of inputs that --weights selects but whose type can't be trained.
void WarnOfUntrainedWeights(Model::Impl& model, const std::string& file) {
  std::vector<std::string> shown;
  for (const ModelValue& value : model.values) {
    const bool is_chosen = value.source == ModelValue::Source::kInitializer &&
                           value.initializer == nullptr && value.constant == nullptr;
    const TensorType type = TensorTypeOf(value.elem_type);
    const bool may_be_quantized = type != TensorType::kBool && BitsOf(type) <= 8;
    if (!is_chosen || IsFloatType(value.elem_type) || may_be_quantized) continue;
    shown.push_back(
        fmt::format("\"{}\" {}", ShortName(value.name), TypeText(value.elem_type, value.dims)));
  }
  if (shown.empty()) return;
  model.warnings.push_back(fmt::format(
      "{}: --weights: {} cannot be trained; {} during a step", file, ShortList(shown, 5),
      shown.size() == 1 ? "it stays constant" : "they stay constant"));
}

// Suggests excluding the selected outputs that can't be planned, unless the error has a remedy.
Error SuggestExcludingDeadOutputs(const Model::Impl& model, const std::vector<std::string>& live,
                                  const NamePatterns& chosen, Error error) {
  constexpr size_t kMaxExcluded = 8;
  const bool is_unplanned =
      error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kInvalidInput;
  if (!is_unplanned || !error.remedy.settings.empty()) return error;
  NamePatterns patterns = chosen;
  for (const std::string& output : model.part.outputs) {
    if (std::find(live.begin(), live.end(), output) != live.end()) continue;
    const std::string pattern = PatternFor(model.proto->graph(), output);
    if (pattern.empty() || patterns.size() == chosen.size() + kMaxExcluded) {
      error.message += "; name only outputs that can be trained";
      return error;
    }
    patterns.push_back("!" + pattern);
  }
  error.remedy = {"exclude what cannot be trained with",
                  {{"outputs", fmt::format("{}", fmt::join(patterns, ","))}}};
  return error;
}

void WarnOfExcludedOutputs(Model::Impl& model, bool is_asked, const std::string& file) {
  const std::string note = LeftOutNote(model.proto->graph(), model.part);
  if (note.empty()) return;
  model.warnings.push_back(fmt::format("{}: left out{}: {}", file,
                                       is_asked ? "" : " because it cannot be trained", note));
}

// Reads the part again that leads to the outputs that can be trained.
Result<LoadOptions> ReadLivePart(Model::Impl* model, const LoadOptions& given,
                                 const std::string& file) {
  auto live = std::move(model->live_outputs);
  model->part = PartOf(model->proto->graph(), std::move(live), true);
  ClearGraph(model);
  return ExpandPart(model, given, file);
}

// Reads the part of the graph that leads to the outputs that were asked for, or to all that can be
// trained.
Result<LoadOptions> ReadTrainedPart(Model::Impl* model, const LoadOptions& given,
                                    const std::string& file) {
  Result<LoadOptions> read = ExpandPart(model, given, file);
  if (!read.ok()) {
    if (model->live_outputs.empty()) return read;
    if (!given.outputs.empty()) {
      const std::vector<std::string> live = model->live_outputs;
      return SuggestExcludingDeadOutputs(*model, live, given.outputs, std::move(read).error());
    }
    read = ReadLivePart(model, given, file);
    if (!read.ok()) return read;
  }
  if (!MarkUntrainedOutputs(model)) return read;
  if (model->live_outputs.empty()) {
    const bool has_float =
        std::any_of(model->graph_outputs.begin(), model->graph_outputs.end(),
                    [&](ValueIndex output) { return IsFloatType(model->value(output).elem_type); });
    // Weights may be inputs; and whoever lowers the model says that its outputs are no floats.
    if (model->trainable_ends.empty() || !has_float) return read;
    std::vector<std::string> outputs;
    for (const std::string& output : model->part.outputs) {
      outputs.push_back(fmt::format("\"{}\"", ShortName(output)));
    }
    Error error = MakeError(ErrorCode::kInvalidInput,
                            fmt::format("{}: nothing can be trained, since no gradient leaves {}",
                                        file, ShortList(outputs, 3)));
    SuggestEnds(*model, &error);
    return error;
  }
  return given.outputs.empty() ? ReadLivePart(model, given, file) : std::move(read);
}

Result<Model> LoadParsed(const std::string& path, const LoadOptions& given, ParsedFile parsed) {
  auto impl = std::make_unique<Model::Impl>();
  impl->proto = std::move(parsed.proto);
  impl->rounding = given.rounding;
  impl->identity.name = std::filesystem::path(path).filename().string();
  impl->identity.sha256 = std::move(parsed.sha256);
  for (const auto& import : impl->proto->opset_import()) {
    impl->identity.opsets[PlainDomain(import.domain())] = import.version();
  }
  if (given.planned != nullptr) {
    CKPLAN_RETURN_IF_ERROR(CheckSameModel(*given.planned, path, impl->identity.sha256));
  }
  const std::string file = impl->identity.name;
  CKPLAN_RETURN_IF_ERROR(CheckNames(*impl->proto, file));
  const onnx::GraphProto& graph = impl->proto->graph();
  CKPLAN_ASSIGN_OR_RETURN(impl->op_hints, HintsIn(given, file));
  CKPLAN_ASSIGN_OR_RETURN(impl->part, ChoosePart(graph, given.outputs, file));
  CKPLAN_ASSIGN_OR_RETURN(const LoadOptions options, ReadTrainedPart(impl.get(), given, file));
  CKPLAN_RETURN_IF_ERROR(CheckHints(*impl, given.optional_dims, file));
  WarnOfUntrainedWeights(*impl, file);
  WarnOfExcludedOutputs(*impl, !given.outputs.empty(), file);
  CKPLAN_RETURN_IF_ERROR(CheckZeroSizes(*impl, options));
  if (options.restored == RestoredOperators::kCaptured) {
    impl->is_captured = true;
    ReadSignature(*impl);
    RestoreOperators(*impl, options.autograd);
    if (IsTorch(options.autograd)) ReadEagerNotes(*impl);
  }
  if (options.fused != FusedOperators::kNone) FuseAttention(*impl, options.fused, options.autograd);
  CKPLAN_RETURN_IF_ERROR(FreezeParameters(*impl, options.freeze));
  CKPLAN_RETURN_IF_ERROR(SetActivationType(*impl, options.activation_type));
  AddWarnings(*impl, file);
  return Model(std::move(impl));
}

}  // namespace

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelIdentity& Model::identity() const { return impl_->identity; }
const DimSizes& Model::dims() const { return impl_->dims; }
std::optional<int64_t> Model::constant_batch() const { return impl_->constant_batch; }
const std::vector<std::string>& Model::warnings() const { return impl_->warnings; }
const std::vector<RestoredOperation>& Model::restored() const { return impl_->restored; }

Result<Model> LoadModel(const std::string& path, const LoadOptions& options) {
  try {
    return Load(path, options);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {  // Thrown by protobuf, ONNX or the file system.
    return NotOnnx(path, std::string(fault.what()).substr(0, 300));
  }
}

}  // namespace ckplan
