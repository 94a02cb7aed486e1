#include <array>
#include <unordered_map>

#include "lib/executor/cuda/testing/ptx/decoder.h"

namespace ckplan::ptx {

namespace {

struct NamedType {
  std::string_view name;
  Type type;
};
constexpr NamedType kTypes[] = {{"pred", Type::kPred}, {"b8", Type::kU8},   {"b16", Type::kU16},
                                {"b32", Type::kU32},   {"b64", Type::kU64}, {"u8", Type::kU8},
                                {"u16", Type::kU16},   {"u32", Type::kU32}, {"u64", Type::kU64},
                                {"s8", Type::kS8},     {"s16", Type::kS16}, {"s32", Type::kS32},
                                {"s64", Type::kS64},   {"f32", Type::kF32}, {"f64", Type::kF64}};

struct NamedOpcode {
  Opcode opcode;
  OperandForm form;
};

const std::unordered_map<std::string_view, NamedOpcode>& Opcodes() {
  constexpr auto result = [](size_t count) { return OperandForm{OperandForm::kResult, count}; };
  static const std::unordered_map<std::string_view, NamedOpcode> opcodes = {
      {"abs", {Opcode::kAbs, result(1)}},
      {"add", {Opcode::kAdd, result(2)}},
      {"addc", {Opcode::kAdd, result(2)}},
      {"and", {Opcode::kAnd, result(2)}},
      {"bar", {Opcode::kBarrier, {OperandForm::kNone}}},
      {"bfi", {Opcode::kBfi, result(4)}},
      {"bra", {Opcode::kBranch, {OperandForm::kNone}}},
      {"clz", {Opcode::kClz, result(1)}},
      {"copysign", {Opcode::kCopysign, result(2)}},
      {"cvt", {Opcode::kCvt, result(1)}},
      {"cvta", {Opcode::kMov, result(1)}},
      {"div", {Opcode::kDiv, result(2)}},
      {"ex2", {Opcode::kEx2, result(1)}},
      {"fma", {Opcode::kFma, result(3)}},
      {"ld", {Opcode::kLoad, {OperandForm::kLoad}}},
      {"mad", {Opcode::kMad, result(3)}},
      {"madc", {Opcode::kMad, result(3)}},
      {"max", {Opcode::kMax, result(2)}},
      {"min", {Opcode::kMin, result(2)}},
      {"mov", {Opcode::kMov, result(1)}},
      {"mul", {Opcode::kMul, result(2)}},
      {"neg", {Opcode::kNeg, result(1)}},
      {"not", {Opcode::kNot, result(1)}},
      {"or", {Opcode::kOr, result(2)}},
      {"prmt", {Opcode::kPrmt, result(3)}},
      {"rcp", {Opcode::kRcp, result(1)}},
      {"rem", {Opcode::kRem, result(2)}},
      {"ret", {Opcode::kReturn, {OperandForm::kNone}}},
      {"rsqrt", {Opcode::kRsqrt, result(1)}},
      {"selp", {Opcode::kSelp, result(3)}},
      {"setp", {Opcode::kSetp, result(2)}},
      {"shl", {Opcode::kShl, result(2)}},
      {"shr", {Opcode::kShr, result(2)}},
      {"sqrt", {Opcode::kSqrt, result(1)}},
      {"st", {Opcode::kStore, {OperandForm::kStore}}},
      {"sub", {Opcode::kSub, result(2)}},
      {"subc", {Opcode::kSub, result(2)}},
      {"xor", {Opcode::kXor, result(2)}}};
  return opcodes;
}

const std::unordered_map<std::string_view, Comparison>& Comparisons() {
  static const std::unordered_map<std::string_view, Comparison> comparisons = {
      {"eq", Comparison::kEqual},
      {"ne", Comparison::kNotEqual},
      {"lt", Comparison::kLess},
      {"le", Comparison::kLessEqual},
      {"gt", Comparison::kGreater},
      {"ge", Comparison::kGreaterEqual},
      {"equ", Comparison::kEqualUnordered},
      {"neu", Comparison::kNotEqualUnordered},
      {"ltu", Comparison::kLessUnordered},
      {"leu", Comparison::kLessEqualUnordered},
      {"gtu", Comparison::kGreaterUnordered},
      {"geu", Comparison::kGreaterEqualUnordered},
      {"nan", Comparison::kNan},
      {"num", Comparison::kNumber}};
  return comparisons;
}

bool SetSpace(std::string_view word, Instruction& to) {
  if (word == "global") {
    to.space = Space::kGlobal;
  } else if (word == "shared") {
    to.space = Space::kShared;
  } else if (word == "local") {
    to.space = Space::kLocal;
  } else if (word == "param") {
    to.space = Space::kParameters;
  } else {
    return false;
  }
  return true;
}

bool SetRounding(std::string_view word, Instruction& to) {
  if (word.size() < 2 || word.size() > 3 || word[0] != 'r') return false;
  if (word.size() == 3 && word[2] != 'i') return false;
  switch (word[1]) {
    case 'n':
      to.rounding = Rounding::kNearest;
      break;
    case 'z':
      to.rounding = Rounding::kZero;
      break;
    case 'm':
      to.rounding = Rounding::kDown;
      break;
    case 'p':
      to.rounding = Rounding::kUp;
      break;
    default:
      return false;
  }
  to.rounds_to_integer = word.size() == 3;
  return true;
}

// Words that change the opcode.
bool SetVariant(std::string_view word, Instruction& to) {
  if (word == "wide") {
    to.opcode = to.opcode == Opcode::kMul ? Opcode::kMulWide : Opcode::kMadWide;
  } else if (word == "hi") {
    to.opcode = to.opcode == Opcode::kMul ? Opcode::kMulHigh : Opcode::kMadHigh;
  } else if (word == "warp") {
    to.opcode = Opcode::kWarpBarrier;
  } else {
    return false;
  }
  return true;
}

bool SetFlag(std::string_view word, Instruction& to) {
  if (word == "ftz") {
    to.flushes = true;
  } else if (word == "sat") {
    to.saturates = true;
  } else if (word == "cc") {
    to.sets_carry = true;
  } else {
    // No effect here: the operands give the vector's size, all reads see all writes, and
    // approximations are computed exactly.
    return word == "lo" || word == "v2" || word == "v4" || word == "nc" || word == "approx" ||
           word == "full" || word == "uni" || word == "sync" || word == "to";
  }
  return true;
}

bool IsFloatOnly(Opcode opcode) {
  return opcode == Opcode::kCopysign || opcode == Opcode::kEx2 || opcode == Opcode::kFma ||
         opcode == Opcode::kRcp || opcode == Opcode::kRsqrt || opcode == Opcode::kSqrt;
}

// True for forms that the interpreter computes. Others are rejected rather than computed wrongly.
bool IsKnown(const Instruction& instruction) {
  const bool is_float = IsFloat(instruction.type);
  switch (instruction.opcode) {
    case Opcode::kMulHigh:
    case Opcode::kMadHigh:
    case Opcode::kMadWide:
      return instruction.type == Type::kU32 || instruction.type == Type::kS32;
    case Opcode::kMulWide:
      return SizeOf(instruction.type) < 8 && !is_float;
    case Opcode::kPrmt:
      return instruction.type == Type::kU32;
    case Opcode::kRem:
    case Opcode::kMad:
      return !is_float;
    case Opcode::kEx2:
    case Opcode::kRsqrt:
      return instruction.type == Type::kF32;
    default:
      break;
  }
  if (IsFloatOnly(instruction.opcode) && !is_float) return false;
  const bool carries = instruction.sets_carry || instruction.adds_carry;
  if (carries && instruction.type != Type::kU32) return false;
  const bool is_fixed =
      instruction.opcode == Opcode::kReturn || instruction.opcode == Opcode::kBranch ||
      instruction.opcode == Opcode::kBarrier || instruction.opcode == Opcode::kWarpBarrier;
  return is_fixed || instruction.type != Type::kNone;
}

}  // namespace

int64_t SizeOf(Type type) {
  constexpr std::array<int64_t, 12> kSizes = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

bool IsSigned(Type type) { return type >= Type::kS8 && type <= Type::kS64; }

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

Type TypeNamed(std::string_view name) {
  for (const NamedType& named : kTypes) {
    if (named.name == name) return named.type;
  }
  return Type::kNone;
}

std::optional<InstructionShape> ShapeOf(const std::vector<std::string_view>& words) {
  const auto found = Opcodes().find(words.front());
  if (found == Opcodes().end()) return std::nullopt;
  InstructionShape shape{{}, found->second.form};
  Instruction& instruction = shape.instruction;
  instruction.opcode = found->second.opcode;
  const std::string_view name = words.front();
  instruction.adds_carry = name == "addc" || name == "madc" || name == "subc";
  bool is_compared = instruction.opcode != Opcode::kSetp;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (const Type type = TypeNamed(word); type != Type::kNone) {
      (instruction.type == Type::kNone ? instruction.type : instruction.from_type) = type;
      continue;
    }
    if (const auto comparison = Comparisons().find(word);
        !is_compared && comparison != Comparisons().end()) {
      instruction.comparison = comparison->second;
      is_compared = true;
      continue;
    }
    if (!SetSpace(word, instruction) && !SetRounding(word, instruction) &&
        !SetVariant(word, instruction) && !SetFlag(word, instruction)) {
      return std::nullopt;
    }
  }
  // Memory holds bits, whatever they mean.
  if (instruction.opcode == Opcode::kLoad || instruction.opcode == Opcode::kStore) {
    if (instruction.type == Type::kF32) instruction.type = Type::kU32;
    if (instruction.type == Type::kF64) instruction.type = Type::kU64;
  }
  // Only addresses of global memory are generic addresses here.
  if (name == "cvta" && instruction.space != Space::kGlobal) return std::nullopt;
  if (!is_compared || !IsKnown(instruction)) return std::nullopt;
  return shape;
}

}  // namespace ckplan::ptx
