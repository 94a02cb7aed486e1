#include "cli/ckbench/chainer_graph.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace ckplan {
namespace {

constexpr int64_t kMaxItems = 1'000'000;

// A function of the file, forward or backward.
struct ChainerFunction {
  bool is_forward = false;
  std::vector<std::pair<int64_t, std::string_view>> inputs;  // With what each of them is.
  std::vector<int64_t> outputs;
  std::string_view kind;
};

// Reads lines until the first fault.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  // The parts of the next line between blanks; the last one has the rest of the line.
  std::vector<std::string_view> Parts(size_t most) {
    std::string_view line = Line();
    std::vector<std::string_view> parts;
    while (!line.empty() && parts.size() + 1 < most) {
      const size_t blank = line.find(' ');
      parts.push_back(line.substr(0, blank));
      line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
    }
    if (!line.empty()) parts.push_back(line);
    return parts;
  }

  std::string_view Line() {
    if (text_.empty()) Fault("unexpected end of the file");
    ++number_;
    const size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(text_.size(), end + 1));
    return line;
  }

  int64_t Number(std::string_view text, int64_t below) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || number < 0 || number >= below) {
      Fault(fmt::format("\"{}\" must be a whole number from 0 to {}", text, below - 1));
      return 0;
    }
    return number;
  }

  void Fault(const std::string& what) {
    if (!error_) {
      error_ =
          Error{ErrorCode::kInvalidInput, fmt::format("{}: line {}: {}", where_, number_, what)};
    }
  }
  bool is_good() const { return !error_; }
  Error error() const { return *error_; }

 private:
  std::string_view text_;
  const std::string& where_;
  int64_t number_ = 0;
  std::optional<Error> error_;
};

struct Variable {
  Bytes bytes;
  std::string_view name;
};

class ChainerReader {
 public:
  ChainerReader(std::string_view text, const std::string& where) : lines_(text, where) {}

  Result<TensorGraph> Read(const std::string& name) && {
    const auto [variables, functions] = ReadPair(kMaxItems);
    variables_.resize(static_cast<size_t>(variables));
    for (int64_t i = 0; i < variables && lines_.is_good(); ++i) ReadVariable();
    for (int64_t i = 0; i < functions && lines_.is_good(); ++i) ReadFunction();
    if (!lines_.is_good()) return lines_.error();
    return MakeGraph(name);
  }

 private:
  std::pair<int64_t, int64_t> ReadPair(int64_t below) {
    const std::vector<std::string_view> parts = lines_.Parts(2);
    if (parts.size() != 2) {
      lines_.Fault("must have two numbers");
      return {0, 0};
    }
    return {lines_.Number(parts[0], below), lines_.Number(parts[1], below)};
  }

  int64_t VariableAt(std::string_view text) {
    return lines_.Number(text, static_cast<int64_t>(variables_.size()));
  }

  void ReadVariable() {
    const std::vector<std::string_view> parts = lines_.Parts(3);
    if (parts.size() != 3) return lines_.Fault("must have a number, bytes and a name");
    Variable& variable = variables_[static_cast<size_t>(VariableAt(parts[0]))];
    variable = {Bytes(lines_.Number(parts[1], kMaxTotalBytes.count())), parts[2]};
  }

  void ReadFunction() {
    ChainerFunction function;
    const std::string_view direction = lines_.Line();
    function.is_forward = direction == "forward";
    if (!function.is_forward && direction != "backward") {
      return lines_.Fault(fmt::format("\"{}\" must be forward or backward", direction));
    }
    const auto [inputs, outputs] = ReadPair(kMaxItems);
    for (int64_t i = 0; i < inputs && lines_.is_good(); ++i) {
      const std::vector<std::string_view> parts = lines_.Parts(2);
      if (parts.size() != 2) return lines_.Fault("must have a variable and what it is");
      function.inputs.emplace_back(VariableAt(parts[0]), parts[1]);
    }
    for (int64_t i = 0; i < outputs && lines_.is_good(); ++i) {
      function.outputs.push_back(VariableAt(lines_.Line()));
    }
    function.kind = lines_.Line();
    lines_.Line();  // Attributes.
    (function.is_forward ? forward_ : backward_).push_back(std::move(function));
  }

  Result<TensorGraph> MakeGraph(const std::string& name) {
    if (forward_.size() != backward_.size()) {
      lines_.Fault(fmt::format("{} forward functions, but {} backward ones", forward_.size(),
                               backward_.size()));
      return lines_.error();
    }
    TensorGraphParts parts;
    parts.name = name;
    std::vector<bool> is_made(variables_.size());
    for (const ChainerFunction& function : forward_) {
      for (const int64_t output : function.outputs) is_made[static_cast<size_t>(output)] = true;
    }
    for (size_t i = 0; i < variables_.size(); ++i) AddVariable(i, is_made[i], &parts);
    std::vector<bool> is_read(variables_.size());
    for (size_t i = 0; i < forward_.size(); ++i) {
      parts.nodes.push_back(NodeOf(i));
      for (const auto& [input, what] : forward_[i].inputs) {
        is_read[static_cast<size_t>(input)] = true;
      }
    }
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (is_made[i] && !is_read[i]) parts.outputs.push_back(tensors_[i]);
    }
    return TensorGraph::Create(std::move(parts));
  }

  void AddVariable(size_t i, bool is_made, TensorGraphParts* parts) {
    const Variable& variable = variables_[i];
    if (!is_made && variable.name.starts_with('/')) {
      parts->parameters += variable.bytes;
      parts->parameter_gradients += variable.bytes;
      return tensors_.push_back(TensorId());
    }
    Tensor tensor;
    tensor.file_id = static_cast<int64_t>(i);
    tensor.name = fmt::format("v{}", i);
    tensor.bytes = variable.bytes;
    tensor.kind = is_made ? TensorKind::kActivation : TensorKind::kInput;
    tensor.requires_grad = is_made;
    tensors_.push_back(parts->tensors.push_back(std::move(tensor)));
  }

  Node NodeOf(size_t i) const {
    const ChainerFunction& function = forward_[i];
    Node node;
    node.file_id = static_cast<int64_t>(i);
    node.name = fmt::format("{}{}", function.kind, i);
    node.op = std::string(function.kind);
    const auto add = [&](int64_t variable, std::vector<TensorId>* list) {
      const TensorId tensor = tensors_[static_cast<size_t>(variable)];
      if (!tensor.is_none()) list->push_back(tensor);
    };
    for (const auto& [input, what] : function.inputs) add(input, &node.inputs);
    for (const int64_t output : function.outputs) add(output, &node.outputs);
    for (const auto& [read, what] : backward_[i].inputs) {
      if (what != "gradient") add(read, &node.backward_reads);
    }
    constexpr int64_t kConvolution = 10;
    node.forward_cost = Cost(function.kind.starts_with("Conv") ? kConvolution : 1);
    node.backward_cost = node.forward_cost;
    return node;
  }

  LineReader lines_;
  std::vector<Variable> variables_;
  std::vector<ChainerFunction> forward_;
  std::vector<ChainerFunction> backward_;
  std::vector<TensorId> tensors_;  // None for parameters.
};

}  // namespace

Result<TensorGraph> ReadChainerGraph(std::string_view text, const std::string& where) {
  return ChainerReader(text, where).Read(where);
}

}  // namespace ckplan
