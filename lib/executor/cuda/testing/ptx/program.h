// A decoded kernel of a PTX module, which the interpreter runs. decoder.h creates it.
//
// Every operand is a register. Literal numbers, and the special registers that the kernels use, are
// also registers, set before the kernel starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF32,
  kF64
};

int64_t SizeOf(Type type);  // In bytes.
bool IsSigned(Type type);
bool IsFloat(Type type);
// Returns the type with this name, such as "f32". Untyped bits are unsigned integers.
Type TypeNamed(std::string_view name);

enum class Opcode : uint8_t {
  kAbs,
  kAdd,
  kAnd,
  kBarrier,
  kBfi,
  kBranch,
  kCall,
  kClz,
  kCopyParameters,
  kCopysign,
  kCvt,
  kDiv,
  kEx2,
  kFma,
  kLoad,
  kMad,
  kMadHigh,
  kMadWide,
  kMax,
  kMin,
  kMov,
  kMul,
  kMulHigh,
  kMulWide,
  kNeg,
  kNot,
  kOr,
  kPack,
  kPrmt,
  kRcp,
  kRem,
  kReturn,
  kRsqrt,
  kSelp,
  kSetp,
  kShl,
  kShr,
  kSqrt,
  kStore,
  kSub,
  kUnpack,
  kWarpBarrier,
  kXor
};

// kCall is the memory for function call parameters.
enum class Space : uint8_t { kGlobal, kShared, kLocal, kParameters, kCall };

// For floats, comparisons that end with Unordered are also true if an operand is NaN.
enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqualUnordered,
  kNotEqualUnordered,
  kLessUnordered,
  kLessEqualUnordered,
  kGreaterUnordered,
  kGreaterEqualUnordered,
  kNan,
  kNumber
};

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };

// A register's index.
using Register = int32_t;
inline constexpr Register kNoRegister = -1;
inline constexpr int kMaxVector = 4;

struct Instruction {
  Opcode opcode = Opcode::kReturn;
  Type type = Type::kNone;
  Type from_type = Type::kNone;  // Only for kCvt.
  Register guard = kNoRegister;
  bool guard_is_negated = false;
  Space space = Space::kGlobal;
  Comparison comparison = Comparison::kEqual;
  Rounding rounding = Rounding::kNearest;
  bool rounds_to_integer = false;
  bool flushes = false;  // Flushes denormal numbers to zero.
  bool saturates = false;
  bool sets_carry = false, adds_carry = false;
  uint8_t vector = 1;         // Registers in `vectors`, of kLoad, kStore, kPack, kUnpack.
  Register to = kNoRegister;  // The result.
  Register a = kNoRegister, b = kNoRegister, c = kNoRegister, d = kNoRegister;
  Register vectors[kMaxVector] = {kNoRegister, kNoRegister, kNoRegister, kNoRegister};
  int64_t offset = 0;  // An address has one.
  // For kBranch and kCall an index into Program::code, for kCopyParameters into copies.
  int32_t target = 0;
  std::string_view text;  // For messages; a view of the module's text.
};

// Copies a parameter or a result within the memory of Space::kCall.
struct ParameterCopy {
  int64_t from = 0, to = 0, bytes = 0;
};

struct Parameter {
  int64_t offset = 0, bytes = 0;
};

struct Constant {
  Register at = kNoRegister;
  uint64_t value = 0;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::vector<ParameterCopy>> copies;
  std::vector<Parameter> parameters;
  int64_t parameter_bytes = 0;
  int64_t shared_bytes = 0, local_bytes = 0, call_bytes = 0;
  int64_t shared_part_bytes = 1;  // The smallest shared memory access.
  int64_t max_threads = 1024;
  int32_t registers = 0;
  std::vector<Constant> constants;
  // Special registers: %tid.x and so on, or kNoRegister.
  Register thread = kNoRegister, block = kNoRegister, threads = kNoRegister, blocks = kNoRegister;
};

}  // namespace ckplan::ptx
