// Splits the text of a PTX module into functions, variables and statements. It knows nvcc's PTX
// grammar, but no instructions.
//
//   .visible .entry Scale(.param .u64 x) .maxntid 256, 1, 1 { @%p1 ld.global.f32 %f1, [%rd1+4]; }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan::ptx {

// The container of device code in nvcc's objects.

// Returns the first PTX text. nvcc compresses it with Zstandard, unless --no-compress forbids it.
// Fails if there is no PTX, if older versions of nvcc compressed it in another way, or if
// libzstd.so.1 is missing.
Result<std::string> PtxIn(const unsigned char* container);

// Returns the first addition or multiplication of floats that does not say how it rounds: an
// assembler may join it with another, so that its bits are not those of the interpreter. Empty if
// there is none.
std::string_view FindContractible(std::string_view text);

// A variable: ".shared .align 16 .b8 name[64]", or a parameter: ".param .u64 name". Names of spaces
// and types exclude their dots.
struct VariableText {
  std::string_view space;
  std::string_view type;
  std::string_view name;
  int64_t alignment = 0;  // 0 if unspecified.
  int64_t elements = 1;
  std::vector<uint8_t> contents;  // Empty if unspecified.
};

// An instruction, a directive or a label.
struct StatementText {
  std::string_view text;
  std::string_view guard;  // The register of "@%p1" or "@!%p1", or empty.
  bool guard_is_negated = false;
  std::vector<std::string_view> words;     // "ld", "global", "f32". A label: "$L__BB0_1:".
  std::vector<std::string_view> operands;  // "%f1", "[%rd1+4]", "{%r1, %r2}".
};

struct FunctionText {
  std::string_view name;
  bool is_kernel = false;
  std::vector<VariableText> parameters, results;
  int64_t max_threads = 1024;  // Per block.
  std::string_view body;       // Without its braces.
};

// Text without comments, and views of its parts.
class ModuleText {
 public:
  static Result<ModuleText> Read(std::string_view text);

  const std::vector<VariableText>& globals() const { return globals_; }
  const std::vector<FunctionText>& functions() const { return functions_; }

 private:
  explicit ModuleText(std::string_view text);
  Result<Done> ReadAll();

  std::vector<char> text_;  // A vector, because views stay valid when it is moved.
  std::vector<VariableText> globals_;
  std::vector<FunctionText> functions_;
};

// Splits a function's body. Drops the braces of blocks.
std::vector<StatementText> ReadBody(std::string_view body);

// Reads a declaration without its semicolon.
Result<VariableText> ReadVariable(std::string_view text);

// Splits at separators outside brackets, and trims the parts.
std::vector<std::string_view> SplitTrimmed(std::string_view text, char separator);

}  // namespace ckplan::ptx
