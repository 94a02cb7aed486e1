// The flags by which people fill in a PlanRequest: one table for all programs, with a row for each
// field (lib/plan/request.h). From it come the help of every command that takes one, the reading of
// what was typed, and the commands and flags that messages tell to type.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/command_line.h"
#include "lib/base/result.h"
#include "lib/plan/request.h"

namespace ckplan {

// What a file of patterns says: one a line, without the blanks around it; empty lines and those
// that begin with "#" are left out.
NamePatterns PatternsInText(std::string_view text);

class RequestFlags {
 public:
  enum class Group {
    kAlgorithm,  // --algo and --decisions, where one algorithm is named.
    kPlanning,   // --budget to --no-liveness
    kReading,    // -D to --align
  };
  // Declares the flags of a whole group, or the flag of one field; `form` and `help` then replace
  // those of the table unless they are empty.
  void Add(CommandLine& line, Group group);
  void Add(CommandLine& line, std::string_view field, std::string_view form = {},
           std::string_view help = {});

  // The request that was typed. kUsage: a value that cannot be read, an unknown algorithm, several
  // budgets.
  Result<PlanRequest> Read() const;

  // The names of dimensions that were typed without a size: "N" of "-D N -D T=2". Read no longer
  // sees them.
  std::vector<std::string> TakeUnboundDims();
  // One set of flags for each combination of sizes, where several are typed for a dimension: two
  // for
  // "-D N=8,16 -D T=2".
  std::vector<RequestFlags> EachCombinationOfDims() const;
  // The flags of a field as they were typed, such as "-D N=8 -D T=2"; empty if none was.
  std::string Typed(std::string_view field) const;
  // The value of a field as it was typed; nothing if it was not given.
  std::optional<std::string> ValueOf(std::string_view field) const;
  // What to say of a budget without a unit that is far below `typical`; empty if there is none.
  std::string BareBudgetHint(Bytes typical) const;
  // The file of measured costs that was named.
  std::optional<std::string> CostFile() const;

 private:
  struct Given {
    std::optional<std::string> text;
    std::vector<std::string> list;
    // The word chosen for a flag with choices; empty if the command has no such flag.
    std::string word;
    bool is_set = false;
  };
  static constexpr size_t kCount = 28;
  static Result<Done> ReadField(size_t row, const Given& given, PlanRequest* request);

  std::array<Given, kCount> given_;
};

// The flag of a field as messages name it: "--budget". A setting that is no field of a request has
// no flag and is returned unchanged.
std::string FlagOf(const std::string& field);

// The flags that make up `request`, each preceded by a blank.
std::string FlagsFor(const PlanRequest& request);

// The error's message and its remedy: "no plan; try --budget 8611000000".
std::string MessageOf(const Error& error);

}  // namespace ckplan
