#include "lib/files/model/bind_dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/dim_expression.h"
#include "lib/base/text.h"
#include "lib/files/model/constant_batch.h"
#include "lib/files/model/input_uses.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

namespace {

using onnx::TensorShapeProto;
using onnx::ValueInfoProto;

constexpr size_t kShownName = 80;  // In characters.

// Some exporters write -1 for an open dimension. 0 is a real size: that of an empty cache.
bool IsOpen(const TensorShapeProto::Dimension& dim) {
  return !dim.has_dim_value() || dim.dim_value() < 0;
}

// True if a name is almost certainly an expression, even if its variables occur nowhere else.
// "batch-size" and "N/A" count as ordinary names.
bool IsClearlyExpression(const std::string& name) {
  return name.find_first_of("*+(%") != std::string::npos;
}

std::string DeclaredText(const TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim()) {
    if (!text.empty()) text += ',';
    text += !IsOpen(dim) ? std::to_string(dim.dim_value())
                         : (dim.dim_param().empty() ? "?" : ShortName(dim.dim_param()));
  }
  return text;
}

class Binder {
 public:
  Binder(const LoadOptions& options, const std::string& file) : options_(options), file_(file) {}

  Result<BoundDims> Bind(const onnx::GraphProto& graph, const InputUses& uses) {
    std::vector<BoundInput> others;  // Parameters, and inputs that are set.
    for (const ValueInfoProto& input : graph.input()) {
      if (uses.initializers.contains(input.name())) continue;
      declared_.push_back(&input);
      if (uses.left_out.contains(input.name())) continue;
      if (!uses.IsBatch(input.name())) {
        others.push_back({&input, input.type()});
      } else if (HasNoNumbers(input)) {
        bound_.not_numbers.push_back(&input);
      } else {
        bound_.inputs.push_back({&input, input.type()});
      }
    }
    CKPLAN_RETURN_IF_ERROR(CheckUtf8());
    CKPLAN_RETURN_IF_ERROR(SetContents(uses, &others));
    FindExpressions();
    CKPLAN_RETURN_IF_ERROR(CheckNames());
    const std::set<std::string> known = OpenNames();
    for (const auto& [name, size] : options_.dims) {
      if (known.contains(name) || expressions_.contains(name)) bound_.dims[name] = size;
    }
    for (const auto& [name, size] : set_dims_) {
      if (bound_.dims.emplace(name, size).first->second != size)
        return ConflictingSizes(name, size);
    }
    for (auto* list : {&bound_.inputs, &others}) {
      for (BoundInput& input : *list) CKPLAN_RETURN_IF_ERROR(Override(input));
    }
    CKPLAN_RETURN_IF_ERROR(CheckExpressions());
    for (auto* list : {&bound_.inputs, &others}) {
      for (BoundInput& input : *list) CKPLAN_RETURN_IF_ERROR(Fill(input));
    }
    if (!open_.empty()) return OpenDimensions();
    for (const auto* list : {&bound_.inputs, &others}) {
      for (const BoundInput& input : *list) CKPLAN_RETURN_IF_ERROR(CheckSize(input));
    }
    for (size_t i = 0; i < others.size(); ++i) bound_.known[i].type = std::move(others[i].type);
    return std::move(bound_);
  }

 private:
  static bool HasNoNumbers(const ValueInfoProto& input) {
    return (input.has_type() && !input.type().has_tensor_type()) ||
           input.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
  }

  // Gives inputs with set values the shape of their values, which may bind dimensions. Fails with
  // kUsage if an input can't be set or can't be a parameter.
  Result<Done> SetContents(const InputUses& uses, std::vector<BoundInput>* others) {
    for (BoundInput& other : *others) {
      const std::string& name = other.input->name();
      KnownInput known{name, {}, std::nullopt};
      const auto set = uses.set.find(name);
      if (set != uses.set.end()) {
        const TensorShapeProto declared = other.type.tensor_type().shape();
        CKPLAN_ASSIGN_OR_RETURN(known.contents, ContentsOf(set->second, &other.type, file_));
        CKPLAN_RETURN_IF_ERROR(CheckGivenShape(name, known.contents->dims));
        for (int i = 0; i < declared.dim_size(); ++i) {
          const std::string& dim = declared.dim(i).dim_param();
          if (!IsOpen(declared.dim(i)) || dim.empty()) continue;
          const int64_t size = other.type.tensor_type().shape().dim(i).dim_value();
          if (set_dims_.emplace(dim, size).first->second != size)
            return ConflictingSizes(dim, size);
        }
      } else if (HasNoNumbers(*other.input)) {
        return Usage(fmt::format("input \"{}\" holds no numbers, so it can't be a parameter",
                                 ShortName(name)));
      }
      bound_.known.push_back(std::move(known));
    }
    return Done{};
  }

  // Fails with kUsage if --input-shape contradicts the shape of an input's value.
  Result<Done> CheckGivenShape(const std::string& name, const Dims& dims) const {
    const auto given = options_.input_shapes.find(name);
    if (given == options_.input_shapes.end() || given->second == dims) return Done{};
    return Usage(
        fmt::format("input \"{}\" cannot have both the shape [{}] (--input-shape) and "
                    "contents of shape [{}] (--set)",
                    ShortName(name), fmt::join(given->second, ","), fmt::join(dims, ",")));
  }

  Error ConflictingSizes(const std::string& dim, int64_t size) const {
    const auto other = bound_.dims.find(dim);
    const auto set = set_dims_.find(dim);
    const int64_t before = other != bound_.dims.end() ? other->second : set->second;
    return Usage(
        fmt::format("dimension \"{}\" cannot be both {} and {}, the length that --set gives it",
                    ShortName(dim), before, size));
  }

  Error Usage(std::string text) const {
    return MakeError(ErrorCode::kUsage, file_ + ": " + std::move(text));
  }

  // Plans contain the names of dimensions and of inputs with given shapes, and JSON requires UTF-8.
  Result<Done> CheckUtf8() const {
    constexpr size_t kLongestShown = 80;
    const auto check = [this](std::string_view what, const std::string& name) -> Result<Done> {
      if (WellFormedUtf8(name) == name) return Done{};
      return MakeError(ErrorCode::kUnsupported,
                       fmt::format("{}: the name \"{}\" of {} is not UTF-8, as ONNX and plan files "
                                   "require; rename it in the model",
                                   file_, Printable(name, kLongestShown), what));
    };
    for (const ValueInfoProto* input : declared_) {
      for (const auto& dim : input->type().tensor_type().shape().dim()) {
        CKPLAN_RETURN_IF_ERROR(check("a dimension", dim.dim_param()));
      }
    }
    for (const auto& given : options_.input_shapes) {
      CKPLAN_RETURN_IF_ERROR(check("an input", given.first));
    }
    return Done{};
  }

  // Returns the names of open dimensions as the model declares them.
  std::set<std::string> DeclaredNames() const {
    std::set<std::string> names;
    for (const ValueInfoProto* input : declared_) {
      const auto& declared = input->type().tensor_type().shape();
      for (const auto& dim : declared.dim()) {
        if (IsOpen(dim) && !dim.dim_param().empty()) names.insert(dim.dim_param());
      }
    }
    return names;
  }

  void FindExpressions() {
    const std::set<std::string> declared = DeclaredNames();
    for (const std::string& name : declared) {
      std::optional<std::set<std::string>> variables = FindDimVariables(name);
      if (!variables) continue;
      const bool are_declared =
          std::includes(declared.begin(), declared.end(), variables->begin(), variables->end());
      if (are_declared || IsClearlyExpression(name)) {
        expressions_.emplace(name, std::move(*variables));
      }
    }
  }

  // Returns the names of open dimensions, with expressions replaced by their variables.
  std::set<std::string> OpenNames() const {
    std::set<std::string> names;
    for (const std::string& name : DeclaredNames()) {
      const auto expression = expressions_.find(name);
      if (expression == expressions_.end()) {
        names.insert(name);
      } else {
        names.insert(expression->second.begin(), expression->second.end());
      }
    }
    return names;
  }

  // The size given for an expression, or implied by an input's shape, must agree with its
  // variables.
  Result<Done> CheckExpressions() const {
    for (const auto& [name, variables] : expressions_) {
      const auto given = bound_.dims.find(name);
      if (given == bound_.dims.end()) continue;
      const std::optional<int64_t> value = EvaluateDim(name, bound_.dims);
      if (!value || *value == given->second) continue;
      Error error = Usage(fmt::format("dimension \"{}\" cannot be {}: with {} it is {}",
                                      ShortName(name), given->second, SizesOf(variables), *value));
      if (options_.dims.contains(name)) {
        error.remedy = {"leave out", {{"dims", fmt::format("{}={}", name, given->second)}}};
      }
      return error;
    }
    return Done{};
  }

  // Formats sizes: "B=3, S=8".
  std::string SizesOf(const std::set<std::string>& variables) const {
    std::vector<std::string> sizes;
    for (const std::string& variable : variables) {
      sizes.push_back(fmt::format("{}={}", ShortName(variable), bound_.dims.at(variable)));
    }
    return ShortList(sizes);
  }

  Result<Done> CheckNames() const {
    const std::set<std::string> dims = OpenNames();
    std::set<std::string> inputs;
    for (const ValueInfoProto* input : declared_) inputs.insert(input->name());
    for (const auto& [name, size] : options_.dims) {
      if (!dims.contains(name) && !expressions_.contains(name)) {
        if (options_.optional_dims.contains(name)) continue;
        Error error = Usage(fmt::format("the model has no dimension \"{}\"; {}", ShortName(name),
                                        ListKnownNames("dimension", dims)));
        if (dims.empty() && ConstantBatch(bound_)) {
          error.remedy = {"set its fixed batch size with", {{"batch", std::to_string(size)}}};
        }
        return error;
      }
      if (size < 0) {
        return Usage(fmt::format("dimension \"{}\" cannot be {}; give it a size of at least 0",
                                 ShortName(name), size));
      }
    }
    for (const auto& [name, shape] : options_.input_shapes) {
      if (!inputs.contains(name)) {
        return Usage(fmt::format("the model has no input \"{}\"; {}", ShortName(name),
                                 ListKnownNames("input", inputs)));
      }
      for (const int64_t dim : shape) {
        if (dim < 0) {
          return Usage(
              fmt::format("input \"{}\" cannot have a dimension of {}; all must be at "
                          "least 0",
                          ShortName(name), dim));
        }
      }
    }
    return Done{};
  }

  static std::string ListKnownNames(std::string_view what, const std::set<std::string>& names) {
    if (names.empty()) return fmt::format("the model has no open {} to bind", what);
    return fmt::format("the model's {}s are: {}", what, ShortList({names.begin(), names.end()}));
  }

  // A given shape also binds the names of the declared dimensions.
  Result<Done> Override(BoundInput& input) {
    const auto given = options_.input_shapes.find(input.input->name());
    if (given == options_.input_shapes.end()) return Done{};
    const TensorShapeProto declared = input.type.tensor_type().shape();
    const bool has_rank = input.type.tensor_type().has_shape();
    if (has_rank && declared.dim_size() != static_cast<int>(given->second.size())) {
      return Usage(fmt::format("input \"{}\" has {} dimensions ({}), but --input-shape gives {}",
                               ShortName(given->first), declared.dim_size(), DeclaredText(declared),
                               given->second.size()));
    }
    auto* shape = input.type.mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (size_t i = 0; i < given->second.size(); ++i) {
      shape->add_dim()->set_dim_value(given->second[i]);
      if (!has_rank) continue;
      const auto& dim = declared.dim(static_cast<int>(i));
      if (!IsOpen(dim) || dim.dim_param().empty()) continue;
      const int64_t size = given->second[i];
      const int64_t bound = bound_.dims.emplace(dim.dim_param(), size).first->second;
      if (bound == size) continue;
      return Usage(fmt::format("dimension \"{}\" of input \"{}\" cannot be both {} and {}",
                               ShortName(dim.dim_param()), ShortName(given->first), bound, size));
    }
    return Done{};
  }

  // Fails with kUsage if an expression's value is not a size.
  Result<Done> Fill(BoundInput& input) {
    const std::string& name = input.input->name();
    if (!input.type.tensor_type().has_shape()) {
      open_.push_back(fmt::format("the shape of input \"{}\"", ShortName(name)));
      input_shapes_.insert(fmt::format("{}=...", ShortName(name)));
      return Done{};
    }
    if (FillDims(input.type, bound_.dims)) return Done{};
    const auto& shape = input.type.tensor_type().shape();
    for (const auto& dim : shape.dim()) {
      if (!IsOpen(dim)) continue;
      if (dim.dim_param().empty()) {
        open_.push_back(fmt::format("an unnamed dimension of input \"{}\"", ShortName(name)));
        input_shapes_.insert(fmt::format("{}={}", ShortName(name), DeclaredText(shape)));
        continue;
      }
      const std::set<std::string> unbound = UnboundIn(dim.dim_param());
      if (unbound.empty()) {
        return Usage(
            fmt::format("dimension \"{}\" of input \"{}\" has no size with {}; give other "
                        "sizes",
                        ShortName(dim.dim_param()), ShortName(name),
                        SizesOf(expressions_.at(dim.dim_param()))));
      }
      for (const std::string& variable : unbound) {
        if (!dims_.insert(fmt::format("{}=...", ShortName(variable))).second &&
            expressions_.contains(dim.dim_param())) {
          continue;  // It is listed on its own.
        }
        open_.push_back(fmt::format("{} (input \"{}\")", ShortName(variable), ShortName(name)));
      }
    }
    return Done{};
  }

  // Returns the names that must be bound before the dimension has a size.
  std::set<std::string> UnboundIn(const std::string& dim) const {
    const auto expression = expressions_.find(dim);
    if (expression == expressions_.end()) return {dim};
    std::set<std::string> unbound;
    for (const std::string& variable : expression->second) {
      if (!bound_.dims.contains(variable)) unbound.insert(variable);
    }
    return unbound;
  }

  Error OpenDimensions() const {
    constexpr size_t kMaxShown = 10;
    Error error = Usage(fmt::format("open dimensions: {}", ShortList(open_)));
    error.remedy.advice = "bind them with";
    std::vector<Remedy::Setting>& settings = error.remedy.settings;
    for (const std::string& shape : input_shapes_) settings.push_back({"input_shapes", shape});
    for (const std::string& dim : dims_) settings.push_back({"dims", dim});
    settings.resize(std::min(settings.size(), kMaxShown));
    return error;
  }

  Result<Done> CheckSize(const BoundInput& input) const {
    const auto& tensor = input.type.tensor_type();
    Dims dims;
    for (const auto& dim : tensor.shape().dim()) dims.push_back(dim.dim_value());
    const auto bytes = TensorBytes(tensor.elem_type(), dims);
    if (bytes.has_value() && *bytes <= kMaxTotalBytes.count()) return Done{};
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format(
            "{}: the size of input \"{}\", {}, {}; use smaller dimensions", file_,
            ShortName(input.input->name()), TypeText(tensor.elem_type(), dims),
            bytes.has_value() ? "is too large for any machine" : "overflows or has no fixed type"));
  }

  const LoadOptions& options_;
  const std::string& file_;
  BoundDims bound_;
  std::vector<const ValueInfoProto*> declared_;  // All inputs except initializers.
  std::map<std::string, int64_t> set_dims_;      // Sizes from the values of inputs.
  // Declared names that are expressions, with their variables.
  std::map<std::string, std::set<std::string>> expressions_;
  std::vector<std::string> open_;
  // Settings that would bind the open dimensions.
  std::set<std::string> input_shapes_;
  std::set<std::string> dims_;
};

}  // namespace

Result<BoundDims> BindDims(const onnx::GraphProto& graph, const InputUses& uses,
                           const LoadOptions& options, const std::string& file) {
  return Binder(options, file).Bind(graph, uses);
}

bool FillDims(onnx::TypeProto& type, const std::map<std::string, int64_t>& dims) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return false;
  bool is_full = true;
  for (auto& dim : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
    if (!IsOpen(dim)) continue;
    const std::string& name = dim.dim_param();
    const auto found = dims.find(name);
    const std::optional<int64_t> size =
        found != dims.end() ? std::optional(found->second) : EvaluateDim(name, dims);
    if (!name.empty() && size && *size >= 0) {
      dim.set_dim_value(*size);
    } else {
      is_full = false;
    }
  }
  return is_full;
}

std::string ShortName(const std::string& name) {
  std::string text;
  size_t shown = 0;
  for (size_t at = 0; at < name.size(); ++shown) {
    if (shown == kShownName) return text + "...";
    const Utf8Character character = Utf8At(name, at);
    const bool is_shown = character.is_valid && IsPrintable(character.value);
    text += is_shown ? name.substr(at, character.bytes) : "?";
    at += character.bytes;
  }
  return text;
}

std::string ShortList(const std::vector<std::string>& items, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), most); ++i) {
    if (i > 0) text += ", ";
    text += items[i];
  }
  if (items.size() > most) text += fmt::format(" and {} more", items.size() - most);
  return text;
}

}  // namespace ckplan
