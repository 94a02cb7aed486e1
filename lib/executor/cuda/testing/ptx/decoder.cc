#include "lib/executor/cuda/testing/ptx/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/executor/cuda/testing/ptx/compute.h"

namespace ckplan::ptx {

namespace {

int64_t AlignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

int64_t BytesOf(const VariableText& variable) {
  return variable.elements * SizeOf(TypeNamed(variable.type));
}

int64_t AlignmentOf(const VariableText& variable) {
  return std::max<int64_t>(variable.alignment, SizeOf(TypeNamed(variable.type)));
}

// Appends a variable to a memory of `total` bytes and returns its offset.
int64_t Place(const VariableText& variable, int64_t& total) {
  const int64_t offset = AlignUp(total, AlignmentOf(variable));
  total = offset + BytesOf(variable);
  return offset;
}

Error NotKnown(std::string_view what, const StatementText& statement) {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("the interpreter does not know {}: {}", what, statement.text));
}

class KernelDecoder {
 public:
  KernelDecoder(const ModuleText& module, const GlobalAddresses& globals)
      : module_(module), globals_(globals) {}

  Result<Program> Decode(std::string_view name) {
    const FunctionText* kernel = Find(name);
    if (kernel == nullptr || !kernel->is_kernel) {
      return MakeError(ErrorCode::kUnsupported, fmt::format("there is no kernel {}", name));
    }
    program_.name = name;
    program_.max_threads = kernel->max_threads;
    CKPLAN_RETURN_IF_ERROR(DecodeFunction(*kernel));
    while (!calls_.empty()) {
      const Call call = calls_.back();
      calls_.pop_back();
      if (begins_.count(call.function->name) == 0) {
        CKPLAN_RETURN_IF_ERROR(DecodeFunction(*call.function));
      }
      program_.code[call.at].target = begins_.at(call.function->name);
    }
    program_.shared_part_bytes = SmallestSharedAccess();
    return std::move(program_);
  }

 private:
  struct Jump {
    size_t at;
    std::string_view label;
  };
  struct Call {
    size_t at;
    const FunctionText* function;
  };

  const FunctionText* Find(std::string_view name) const {
    const auto found =
        std::find_if(module_.functions().begin(), module_.functions().end(),
                     [name](const FunctionText& function) { return function.name == name; });
    return found == module_.functions().end() ? nullptr : &*found;
  }

  Result<Done> DecodeFunction(const FunctionText& function) {
    registers_.clear();
    symbols_.clear();
    variables_.clear();
    std::unordered_map<std::string_view, int32_t> labels;
    std::vector<Jump> jumps;
    begins_[function.name] = Here();
    for (const VariableText& parameter : function.parameters) AddParameter(function, parameter);
    for (const VariableText& result : function.results) AddParameter(function, result);
    for (const StatementText& statement : ReadBody(function.body)) {
      const std::string_view first = statement.words.front();
      if (statement.text.front() == '.') {
        CKPLAN_RETURN_IF_ERROR(Declare(statement));
      } else if (first.back() == ':') {
        labels[first.substr(0, first.size() - 1)] = Here();
      } else if (first == "call") {
        CKPLAN_RETURN_IF_ERROR(AddCall(statement));
      } else {
        CKPLAN_RETURN_IF_ERROR(AddInstruction(statement));
        if (first == "bra") jumps.push_back({program_.code.size() - 1, statement.operands[0]});
      }
    }
    program_.code.push_back({.opcode = Opcode::kReturn, .text = "ret"});
    for (const Jump& jump : jumps) {
      const auto label = labels.find(jump.label);
      if (label == labels.end()) {
        return MakeError(ErrorCode::kUnsupported, fmt::format("there is no label {}", jump.label));
      }
      program_.code[jump.at].target = label->second;
    }
    return Done{};
  }

  int64_t SmallestSharedAccess() const {
    int64_t smallest = SizeOf(Type::kU64);
    for (const Instruction& instruction : program_.code) {
      if (instruction.space == Space::kShared) {
        smallest = std::min(smallest, SizeOf(instruction.type));
      }
    }
    return smallest;
  }

  int32_t Here() const { return static_cast<int32_t>(program_.code.size()); }

  // ---- Variables --------------------------------------------------------------------------------

  // A kernel's parameters have their own memory. Those of other functions, and their results, are
  // in the call memory, at the same places for each call.
  void AddParameter(const FunctionText& function, const VariableText& variable) {
    if (function.is_kernel) {
      const int64_t offset = Place(variable, program_.parameter_bytes);
      program_.parameters.push_back({offset, BytesOf(variable)});
      symbols_[variable.name] = static_cast<uint64_t>(offset);
    } else {
      AddCallVariable(variable, PlaceOf(function, variable));
    }
  }

  static std::string PlaceOf(const FunctionText& function, const VariableText& variable) {
    return fmt::format("{}: {}", function.name, variable.name);
  }

  Parameter AddCallVariable(const VariableText& variable, const std::string& place) {
    const auto [found, is_new] = call_places_.try_emplace(place);
    if (is_new) found->second = {Place(variable, program_.call_bytes), BytesOf(variable)};
    variables_[variable.name] = found->second;
    return found->second;
  }

  Result<Done> Declare(const StatementText& statement) {
    const std::string_view directive = statement.words.front();
    if (directive == "reg" || directive == "pragma" || directive == "loc") return Done{};
    CKPLAN_ASSIGN_OR_RETURN(const VariableText variable, ReadVariable(statement.text));
    if (directive == "shared") {
      symbols_[variable.name] = static_cast<uint64_t>(Place(variable, program_.shared_bytes));
    } else if (directive == "local") {
      symbols_[variable.name] = static_cast<uint64_t>(Place(variable, program_.local_bytes));
    } else if (directive == "param") {
      AddCallVariable(variable, fmt::format("{}: {} of {} bytes", begins_.size(), variable.name,
                                            BytesOf(variable)));
    } else {
      return NotKnown("this declaration", statement);
    }
    return Done{};
  }

  // ---- Calls ------------------------------------------------------------------------------------

  // call (result), function, (parameter, ...);
  Result<Done> AddCall(const StatementText& statement) {
    std::vector<std::string_view> operands = statement.operands;
    std::vector<std::string_view> results;
    if (!operands.empty() && operands.front().front() == '(') {
      results = InBrackets(operands.front());
      operands.erase(operands.begin());
    }
    const FunctionText* function = operands.empty() ? nullptr : Find(operands.front());
    if (function == nullptr) return NotKnown("the function of this call", statement);
    const std::vector<std::string_view> arguments =
        operands.size() > 1 ? InBrackets(operands[1]) : std::vector<std::string_view>();
    if (arguments.size() != function->parameters.size() ||
        results.size() != function->results.size()) {
      return NotKnown("a call with other parameters", statement);
    }
    std::vector<ParameterCopy> before, after;
    for (size_t i = 0; i < arguments.size(); ++i) {
      CKPLAN_RETURN_IF_ERROR(
          AddCopy(arguments[i], *function, function->parameters[i], true, statement, before));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      CKPLAN_RETURN_IF_ERROR(
          AddCopy(results[i], *function, function->results[i], false, statement, after));
    }
    AddCopies(std::move(before), statement);
    calls_.push_back({program_.code.size(), function});
    Instruction call{.opcode = Opcode::kCall, .text = statement.text};
    SetGuard(statement, call);
    if (call.guard != kNoRegister) return NotKnown("a call with a guard", statement);
    program_.code.push_back(call);
    AddCopies(std::move(after), statement);
    return Done{};
  }

  static std::vector<std::string_view> InBrackets(std::string_view text) {
    return SplitTrimmed(text.substr(1, text.size() - 2), ',');
  }

  Result<Done> AddCopy(std::string_view own, const FunctionText& function,
                       const VariableText& formal, bool is_argument, const StatementText& statement,
                       std::vector<ParameterCopy>& copies) {
    const auto variable = variables_.find(own);
    if (variable == variables_.end()) return NotKnown("a parameter of this call", statement);
    const auto [found, is_new] = call_places_.try_emplace(PlaceOf(function, formal));
    if (is_new) found->second = {Place(formal, program_.call_bytes), BytesOf(formal)};
    if (found->second.bytes != variable->second.bytes) {
      return NotKnown("a parameter of another size", statement);
    }
    const int64_t inside = found->second.offset;
    const int64_t outside = variable->second.offset;
    copies.push_back(
        {is_argument ? outside : inside, is_argument ? inside : outside, found->second.bytes});
    return Done{};
  }

  void AddCopies(std::vector<ParameterCopy> copies, const StatementText& statement) {
    if (copies.empty()) return;
    program_.code.push_back({.opcode = Opcode::kCopyParameters,
                             .target = static_cast<int32_t>(program_.copies.size()),
                             .text = statement.text});
    program_.copies.push_back(std::move(copies));
  }

  // ---- Operands ---------------------------------------------------------------------------------

  Register NewRegister() { return program_.registers++; }

  Register Named(std::string_view name) {
    const auto [found, is_new] = registers_.try_emplace(name, kNoRegister);
    if (is_new) found->second = NewRegister();
    return found->second;
  }

  Register Special(Register& at) {
    if (at == kNoRegister) at = NewRegister();
    return at;
  }

  Register Number(uint64_t value) {
    const auto [found, is_new] = numbers_.try_emplace(value, kNoRegister);
    if (is_new) {
      found->second = NewRegister();
      program_.constants.push_back({found->second, value});
    }
    return found->second;
  }

  // Returns an operand's register, or kNoRegister for an unknown form.
  Register Operand(std::string_view text) {
    if (text == "%tid.x") return Special(program_.thread);
    if (text == "%ctaid.x") return Special(program_.block);
    if (text == "%ntid.x") return Special(program_.threads);
    if (text == "%nctaid.x") return Special(program_.blocks);
    if (text == "_") return NewRegister();  // An unused result.
    if (text.front() == '%') {
      return text.find('.') == std::string_view::npos ? Named(text) : kNoRegister;
    }
    if (const auto number = NumberIn(text)) return Number(*number);
    if (const auto found = symbols_.find(text); found != symbols_.end()) {
      return Number(found->second);
    }
    if (const auto found = globals_.find(text); found != globals_.end()) {
      return Number(found->second);
    }
    return kNoRegister;
  }

  // 12, -3, 0x1F, 0f3F800000 (bits of a float32), 0d3FF0000000000000 (bits of a float64).
  static std::optional<uint64_t> NumberIn(std::string_view text) {
    const bool is_negative = text.front() == '-';
    std::string_view digits = text.substr(is_negative ? 1 : 0);
    if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
    int base = 10;
    const std::string_view prefix = digits.substr(0, 2);
    if (prefix == "0x" || prefix == "0f" || prefix == "0d" || prefix == "0F" || prefix == "0D") {
      base = 16;
      digits.remove_prefix(2);
    }
    if (base == 10 && digits.back() == 'U') digits.remove_suffix(1);
    uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (read.ptr != digits.data() + digits.size()) return std::nullopt;
    return is_negative ? 0 - value : value;
  }

  void SetGuard(const StatementText& statement, Instruction& to) {
    if (statement.guard.empty()) return;
    to.guard = Named(statement.guard);
    to.guard_is_negated = statement.guard_is_negated;
  }

  // Reads "[name+offset]".
  bool ReadAddress(std::string_view text, Instruction& to) {
    if (text.size() < 3 || text.front() != '[') return false;
    std::string_view name = text.substr(1, text.size() - 2);
    if (const size_t plus = name.find('+'); plus != std::string_view::npos) {
      const auto offset = NumberIn(name.substr(plus + 1));
      if (!offset) return false;
      to.offset = static_cast<int64_t>(*offset);
      name = name.substr(0, plus);
    }
    if (const auto found = variables_.find(name); found != variables_.end()) {
      to.space = Space::kCall;
      to.a = Number(static_cast<uint64_t>(found->second.offset));
    } else {
      to.a = Operand(name);
    }
    return to.a != kNoRegister;
  }

  // Reads "%r1" or "{%r1, %r2}".
  bool ReadVector(std::string_view text, Instruction& to) {
    std::vector<std::string_view> parts{text};
    if (text.front() == '{') parts = SplitTrimmed(text.substr(1, text.size() - 2), ',');
    if (parts.empty() || parts.size() > kMaxVector) return false;
    to.vector = static_cast<uint8_t>(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      to.vectors[i] = Operand(parts[i]);
      if (to.vectors[i] == kNoRegister) return false;
    }
    return true;
  }

  // ---- Instructions -----------------------------------------------------------------------------

  Result<Done> AddInstruction(const StatementText& statement) {
    const auto shape = ShapeOf(statement.words);
    if (!shape) return NotKnown("this instruction", statement);
    Instruction instruction = shape->instruction;
    instruction.text = statement.text;
    SetGuard(statement, instruction);
    if (!ReadOperands(statement.operands, shape->operands, instruction)) {
      return NotKnown("these operands", statement);
    }
    program_.code.push_back(instruction);
    return Done{};
  }

  bool ReadOperands(const std::vector<std::string_view>& operands, OperandForm form,
                    Instruction& to) {
    switch (form.kind) {
      case OperandForm::kNone:
        // Only barrier 0 of a block, and only warp barriers of all threads.
        if (to.opcode == Opcode::kBarrier) return operands.size() == 1 && operands[0] == "0";
        if (to.opcode == Opcode::kWarpBarrier) return operands.size() == 1 && operands[0] == "-1";
        return true;
      case OperandForm::kLoad:
        return operands.size() == 2 && ReadVector(operands[0], to) && ReadAddress(operands[1], to);
      case OperandForm::kStore:
        return operands.size() == 2 && ReadAddress(operands[0], to) && ReadVector(operands[1], to);
      case OperandForm::kResult:
        break;
    }
    if (operands.size() != form.count + 1U) return false;
    if (to.opcode == Opcode::kMov && operands[0].front() == '{') {
      to.opcode = Opcode::kUnpack;
      to.a = Operand(operands[1]);
      return to.a != kNoRegister && ReadVector(operands[0], to);
    }
    to.to = Operand(operands[0]);
    if (to.to == kNoRegister) return false;
    if (to.opcode == Opcode::kMov && operands[1].front() == '{') {
      to.opcode = Opcode::kPack;
      return ReadVector(operands[1], to);
    }
    const std::array<Register*, 4> inputs = {&to.a, &to.b, &to.c, &to.d};
    for (size_t i = 0; i < form.count; ++i) {
      *inputs[i] = Operand(operands[i + 1]);
      if (*inputs[i] == kNoRegister) return false;
    }
    return true;
  }

  const ModuleText& module_;
  const GlobalAddresses& globals_;
  Program program_;
  // Belong to the function being decoded.
  std::unordered_map<std::string_view, Register> registers_;
  std::unordered_map<std::string_view, uint64_t> symbols_;     // Addresses of variables.
  std::unordered_map<std::string_view, Parameter> variables_;  // In Space::kCall.
  // Belong to the whole program.
  std::unordered_map<uint64_t, Register> numbers_;
  std::unordered_map<std::string, Parameter> call_places_;
  std::unordered_map<std::string_view, int32_t> begins_;
  std::vector<Call> calls_;
};

}  // namespace

Result<Program> DecodeKernel(const ModuleText& module, std::string_view name,
                             const GlobalAddresses& globals) {
  return KernelDecoder(module, globals).Decode(name);
}

}  // namespace ckplan::ptx
