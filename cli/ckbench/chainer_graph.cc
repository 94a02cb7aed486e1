#include "cli/ckbench/chainer_graph.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace ckplan {
namespace {

constexpr int64_t kMaxItems = 1'000'000;
constexpr int64_t kMaxVariableBytes = int64_t{1} << 40;  // Times a batch, without overflow.

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

class ChainerReader {
 public:
  ChainerReader(std::string_view text, const std::string& where) : lines_(text, where) {}

  Result<ChainerNetwork> Read() && {
    const auto [variables, functions] = ReadPair(kMaxItems);
    network_.variables.resize(static_cast<size_t>(variables));
    for (int64_t i = 0; i < variables && lines_.is_good(); ++i) ReadVariable();
    for (int64_t i = 0; i < functions && lines_.is_good(); ++i) ReadFunction();
    if (lines_.is_good() && network_.functions.size() != backward_count_) {
      lines_.Fault(fmt::format("{} forward functions, but {} backward ones",
                               network_.functions.size(), backward_count_));
    }
    if (!lines_.is_good()) return lines_.error();
    for (const ChainerFunction& function : network_.functions) {
      ChainerVariable& output = network_.variables[function.output];
      output.is_made = true;
      output.is_parameter = false;
    }
    return std::move(network_);
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

  size_t VariableAt(std::string_view text) {
    return static_cast<size_t>(
        lines_.Number(text, static_cast<int64_t>(network_.variables.size())));
  }

  void ReadVariable() {
    const std::vector<std::string_view> parts = lines_.Parts(3);
    if (parts.size() != 3) return lines_.Fault("must have a number, bytes and a name");
    ChainerVariable& variable = network_.variables[VariableAt(parts[0])];
    variable.bytes = Bytes(lines_.Number(parts[1], kMaxVariableBytes));
    variable.is_parameter = parts[2].starts_with('/');
  }

  void ReadFunction() {
    const std::string_view direction = lines_.Line();
    const bool is_forward = direction == "forward";
    if (!is_forward && direction != "backward") {
      return lines_.Fault(fmt::format("\"{}\" must be forward or backward", direction));
    }
    const auto [inputs, outputs] = ReadPair(kMaxItems);
    if (is_forward && outputs != 1) return lines_.Fault("a forward function must have one output");
    ChainerFunction function;
    for (int64_t i = 0; i < inputs && lines_.is_good(); ++i) {
      const std::vector<std::string_view> parts = lines_.Parts(2);
      if (parts.size() != 2) return lines_.Fault("must have a variable and what it is");
      const size_t variable = VariableAt(parts[0]);
      if (parts[1] != "gradient")
        (is_forward ? function.inputs : function.reads).push_back(variable);
    }
    if (is_forward && lines_.is_good() && function.inputs.empty()) {
      return lines_.Fault("a forward function must have an input");
    }
    for (int64_t i = 0; i < outputs && lines_.is_good(); ++i) {
      const size_t variable = VariableAt(lines_.Line());
      function.output = variable;
      if (!is_forward) function.gradients.push_back(variable);
    }
    function.kind = lines_.Line();
    lines_.Line();  // Attributes.
    if (is_forward) return network_.functions.push_back(std::move(function));
    const size_t of = backward_count_++;
    if (of >= network_.functions.size()) return;  // Reported once all are read.
    network_.functions[of].reads = std::move(function.reads);
    network_.functions[of].gradients = std::move(function.gradients);
  }

  LineReader lines_;
  ChainerNetwork network_;
  size_t backward_count_ = 0;
};

}  // namespace

Result<ChainerNetwork> ReadChainerNetwork(std::string_view text, const std::string& where) {
  return ChainerReader(text, where).Read();
}

Result<TensorGraph> GraphOf(const ChainerNetwork& network, const std::string& name) {
  TensorGraphParts parts;
  parts.name = name;
  std::vector<TensorId> tensors;  // None for parameters.
  for (const ChainerVariable& variable : network.variables) {
    const size_t i = tensors.size();
    if (variable.is_parameter) {
      parts.parameters += variable.bytes;
      parts.parameter_gradients += variable.bytes;
      tensors.emplace_back();
      continue;
    }
    Tensor tensor;
    tensor.file_id = static_cast<int64_t>(i);
    tensor.name = fmt::format("v{}", i);
    tensor.bytes = variable.bytes;
    tensor.kind = variable.is_made ? TensorKind::kActivation : TensorKind::kInput;
    tensor.requires_grad = variable.is_made;
    tensors.push_back(parts.tensors.push_back(std::move(tensor)));
  }
  std::vector<bool> is_read(network.variables.size());
  for (const ChainerFunction& function : network.functions) {
    const size_t i = parts.nodes.size();
    Node node;
    node.file_id = static_cast<int64_t>(i);
    node.name = fmt::format("{}{}", function.kind, i);
    node.op = function.kind;
    for (const size_t input : function.inputs) {
      is_read[input] = true;
      if (!tensors[input].is_none()) node.inputs.push_back(tensors[input]);
    }
    node.outputs.push_back(tensors[function.output]);
    for (const size_t read : function.reads) {
      if (!tensors[read].is_none()) node.backward_reads.push_back(tensors[read]);
    }
    constexpr int64_t kConvolution = 10;
    node.forward_cost = Cost(function.kind.starts_with("Conv") ? kConvolution : 1);
    node.backward_cost = node.forward_cost;
    parts.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < network.variables.size(); ++i) {
    if (network.variables[i].is_made && !is_read[i]) parts.outputs.push_back(tensors[i]);
  }
  return TensorGraph::Create(std::move(parts));
}

ChainerNetwork WithBatch(ChainerNetwork network, int64_t batch, int64_t of) {
  for (ChainerVariable& variable : network.variables) {
    if (!variable.is_parameter) variable.bytes = Bytes(batch * variable.bytes.count() / of);
  }
  return network;
}

}  // namespace ckplan
