#include "cli/ckplan/source.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/common/files.h"
#include "cli/common/size_arg.h"
#include "lib/base/hash.h"
#include "lib/cost/table.h"
#include "lib/emit/json_graph.h"

namespace ckplan {
namespace {

constexpr int64_t kMostDim = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostAlignment = int64_t{1} << 30;
constexpr std::string_view kOwnCosts = "graph";  // As a plan names the costs of a graph file.

struct NamedText {
  std::string name;
  std::string_view text;
};

// "NAME=TEXT", where NAME may hold a "=" itself.
Result<NamedText> SplitNamed(std::string_view text, std::string_view flag, std::string_view form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" is not of the form {}", flag,
                                                    text.substr(0, 80), form));
  }
  return NamedText{std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

Result<std::map<std::string, int64_t>> ReadDims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const NamedText dim, SplitNamed(text, "--dim", "NAME=N"));
    CKPLAN_ASSIGN_OR_RETURN(const int64_t size,
                            ParseInteger(dim.text, "--dim " + dim.name, 1, kMostDim));
    if (!dims.emplace(dim.name, size).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("--dim: {} is bound twice", dim.name));
    }
  }
  return dims;
}

Result<std::map<std::string, std::vector<int64_t>>> ReadShapes(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(NamedText shape, SplitNamed(text, "--input-shape", "NAME=N,N,..."));
    std::vector<int64_t> sizes;
    for (std::string_view rest = shape.text;;) {
      const size_t comma = rest.find(',');
      const std::string flag = "--input-shape " + shape.name;
      CKPLAN_ASSIGN_OR_RETURN(const int64_t size,
                              ParseInteger(rest.substr(0, comma), flag, 1, kMostDim));
      sizes.push_back(size);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (!shapes.emplace(shape.name, std::move(sizes)).second) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--input-shape: {} has two shapes", shape.name));
    }
  }
  return shapes;
}

Result<Autograd> ReadAutograd(const std::string& text) {
  for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
    if (text == NameOf(autograd)) return autograd;
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--autograd: \"{}\" is neither minimal nor torch", text));
}

Result<ActivationType> ReadActivationType(const std::string& text) {
  for (const ActivationType type : {ActivationType::kFloat32, ActivationType::kBFloat16}) {
    if (text == NameOf(type)) return type;
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--activation-type: \"{}\" is neither float32 nor bf16", text));
}

Error NotForGraphFiles(std::string_view flag, std::string_view why) {
  return MakeError(ErrorCode::kUsage, fmt::format("{} is for models; a graph file {}", flag, why));
}

Result<TensorGraph> WithCosts(const TensorGraph& graph, const CostModel& cost) {
  TensorGraphParts parts = PartsOf(graph);
  if (cost.kind == CostKind::kUnit) {
    for (Node& node : parts.nodes) node.forward_cost = node.backward_cost = Cost(1);
  } else {
    CKPLAN_RETURN_IF_ERROR(SetMeasuredCosts(cost.path, parts.nodes));
  }
  return TensorGraph::Create(std::move(parts));
}

Result<Done> CheckGraphFileRequest(const SourceRequest& request) {
  if (!request.load.dims.empty()) return NotForGraphFiles("--dim", "has no dimensions");
  if (!request.load.input_shapes.empty()) return NotForGraphFiles("--input-shape", "has no shapes");
  if (request.autograd != Autograd::kMinimal) {
    return NotForGraphFiles("--autograd torch", "says itself what its backward reads");
  }
  if (request.load.activation_type != ActivationType::kOfModel) {
    return NotForGraphFiles("--activation-type", "has sizes of its own");
  }
  if (!request.cost) return Done{};
  if (request.cost->kind == CostKind::kUnit || request.cost->kind == CostKind::kFile) return Done{};
  return NotForGraphFiles("--cost " + request.cost->name(),
                          "has costs of its own, which --cost unit or file:PATH may replace");
}

Result<Source> LoadGraphFile(const SourceRequest& request) {
  CKPLAN_RETURN_IF_ERROR(CheckGraphFileRequest(request));
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(request.path));
  const bool is_stdin = request.path == kStandardStream;
  const std::string where =
      is_stdin ? "stdin" : std::filesystem::path(request.path).filename().string();
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph, ReadGraphJson(text, where));
  if (request.cost) {
    CKPLAN_ASSIGN_OR_RETURN(graph, WithCosts(graph, *request.cost));
  }
  Source source{std::move(graph), {}, std::string(kOwnCosts), "1", {}, {}, 1, false, {}, {}};
  source.identity.name = where;
  source.identity.sha256 = Sha256Hex(text);
  return source;
}

Result<Source> LoadModelFile(const SourceRequest& request) {
  LowerOptions lower;
  lower.autograd = request.autograd;
  if (request.cost) {
    lower.cost = *request.cost;
  } else {
    CKPLAN_ASSIGN_OR_RETURN(lower.cost, ParseCostModel("flops"));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Model model, LoadModel(request.path, request.load));
  CKPLAN_ASSIGN_OR_RETURN(ModelGraph lowered, LowerModel(model, lower));
  Source source{std::move(lowered.graph),
                model.identity(),
                lower.cost.name(),
                std::string(lower.cost.unit()),
                request.autograd,
                request.load.activation_type,
                1,
                true,
                std::move(lowered.roles),
                model.warnings()};
  for (std::string& warning : lowered.warnings) source.warnings.push_back(std::move(warning));
  return source;
}

}  // namespace

Result<SourceRequest> SourceRequestOf(const Options& options, const std::string& path) {
  SourceRequest request;
  request.path = path;
  CKPLAN_ASSIGN_OR_RETURN(request.load.dims, ReadDims(options.dims));
  CKPLAN_ASSIGN_OR_RETURN(request.load.input_shapes, ReadShapes(options.input_shapes));
  if (options.autograd) {
    CKPLAN_ASSIGN_OR_RETURN(request.autograd, ReadAutograd(*options.autograd));
  }
  if (options.activation_type) {
    CKPLAN_ASSIGN_OR_RETURN(request.load.activation_type,
                            ReadActivationType(*options.activation_type));
  }
  if (options.cost) {
    CKPLAN_ASSIGN_OR_RETURN(request.cost, ParseCostModel(*options.cost));
  }
  if (options.align) {
    CKPLAN_ASSIGN_OR_RETURN(request.align_bytes,
                            ParseInteger(*options.align, "--align", 1, kMostAlignment));
  }
  return request;
}

Result<SourceRequest> SourceRequestOf(const PlanRequest& request, const ModelIdentity& model,
                                      const std::optional<std::string>& cost,
                                      const std::string& path) {
  SourceRequest source;
  source.path = path;
  source.load = {model.dims, model.input_shapes, request.activation_type};
  source.autograd = request.autograd;
  source.align_bytes = request.align_bytes;
  if (cost) {
    CKPLAN_ASSIGN_OR_RETURN(source.cost, ParseCostModel(*cost));
    if (source.cost->name() == request.cost_model) return source;
    return MakeError(ErrorCode::kUsage, fmt::format("the plan was made with --cost {}, not {}",
                                                    request.cost_model, source.cost->name()));
  }
  if (request.cost_model == "file") {
    return MakeError(ErrorCode::kUsage,
                     "the plan's costs came from a file; name it with --cost file:PATH");
  }
  if (request.cost_model == kOwnCosts) return source;
  CKPLAN_ASSIGN_OR_RETURN(source.cost, ParseCostModel(request.cost_model));
  return source;
}

bool IsGraphFile(const std::string& path) {
  if (path == kStandardStream || path.ends_with(".json")) return true;
  // No ONNX file begins so: a protobuf message starts with a field's tag, and 0x7B would be the
  // start of a group, which ONNX has none of. Text forms of ONNX have endings of their own.
  if (path.ends_with("txt") || path.ends_with("textproto")) return false;
  constexpr size_t kPeekedBytes = 64;
  const std::string front = PeekFile(path, kPeekedBytes);
  const size_t first = front.find_first_not_of(" \t\r\n");
  return first != std::string::npos && front[first] == '{';
}

Result<Source> LoadSource(const SourceRequest& request) {
  CKPLAN_ASSIGN_OR_RETURN(
      Source source, IsGraphFile(request.path) ? LoadGraphFile(request) : LoadModelFile(request));
  if (request.cost) {
    source.cost_model = request.cost->name();
    source.cost_unit = std::string(request.cost->unit());
  }
  if (request.align_bytes > 1) {
    CKPLAN_ASSIGN_OR_RETURN(source.graph, AlignSizes(source.graph, request.align_bytes));
    source.align_bytes = request.align_bytes;
  }
  return source;
}

}  // namespace ckplan
