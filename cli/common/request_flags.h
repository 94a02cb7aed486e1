// The flags with which people fill in a PlanRequest. One table for all programs has a row for each
// field (lib/planning/plan/request.h). The help of every command with such a flag, the parsing of
// typed values, and the commands and flags that messages suggest all come from it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/request_values.h"
#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

struct FilesOfPlan;

// Returns the patterns in the text of a file, one for each line, without surrounding blanks. Empty
// lines and lines that begin with "#" are skipped.
NamePatterns PatternsInText(std::string_view text);

class RequestFlags {
 public:
  explicit RequestFlags(Reading reading = Reading::kCaptured);

  enum class Group {
    kAlgorithm,    // --algo and --decisions, where one algorithm is named.
    kPlanning,     // --effort to --no-liveness, kConstraints among them.
    kConstraints,  // --keep to --never-rerun, which commands that make many plans take as well.
    kReading,      // -D to --align
  };

  // Declares the flags of a group that are not declared yet, or the flag of one field. If `form`
  // and `help` are not empty, they replace those of the table.
  void Add(CommandLine& line, Group group);
  void Add(CommandLine& line, std::string_view field, std::string_view form = {},
           std::string_view help = {});

  // Returns the request that was typed. kUsage: a value that cannot be read, an unknown algorithm,
  // or several budgets.
  Result<PlanRequest> Read() const;

  // Removes and returns the names of dimensions that were typed without a size: "N" of "-D N -D
  // T=2". Read no longer sees them.
  std::vector<std::string> TakeUnboundDims();
  // Makes Read ignore the settings of these names (lib/files/model/used_settings.h) where a model
  // lacks them. They are those of a file that serves several models.
  void SetOptionalDims(std::set<std::string> names) { optional_dims_ = std::move(names); }
  // Returns one set of flags for each combination of sizes, if several sizes are typed for a
  // dimension: two sets for "-D N=8,16 -D T=2". kUsage: there are more than 1000.
  Result<std::vector<RequestFlags>> EachCombinationOfDims() const;
  // Returns one set of flags for each budget, if several are typed: two sets for "--budget
  // 40%,60%". A budget that is typed twice counts once.
  std::vector<RequestFlags> EachBudget() const;
  // Returns whether a list was typed, of algorithms, budgets or sizes of a dimension.
  bool HasList() const;
  // Forgets the value or the list that was typed for a field.
  void LeaveOut(std::string_view field);
  // Returns the field of the budget that was typed, such as "budget" or "added_time", or "" if
  // there is none.
  std::string BudgetField() const;
  // Reads one field alone, and leaves the others of the request as they are.
  Result<Done> ReadField(std::string_view field, PlanRequest* request) const;
  // Returns the flags of a field as they are typed in a shell, such as "-D N=8 -D T=2", or "" if
  // there were none.
  std::string Typed(std::string_view field) const;
  // Returns the value of a field as it was typed, or nothing if it was not given.
  std::optional<std::string> ValueOf(std::string_view field) const;
  // Returns a hint about a budget without a unit that is far below `typical`, or "" if none is
  // needed.
  std::string BareBudgetHint(Bytes typical) const;
  // Returns the named files that are needed to read the plan again.
  FilesOfPlan PlanFiles() const;
  // Returns the file of measured costs that was named.
  std::optional<std::string> CostFile() const;

 private:
  struct Given {
    std::optional<std::string> text;
    std::vector<std::string> list;
    // The word chosen for a flag with choices; empty if the command has no such flag.
    std::string word;
    bool is_word_typed = false;
    bool is_set = false;
    bool is_declared = false;
  };
  static Result<Done> ReadRow(size_t row, const Given& given, PlanRequest* request);
  // Returns true if the row has its own default, and the user typed no other value.
  bool IsImplied(size_t row) const;
  // Applies kNoRestore, which stands for several flags.
  void ReadOneByOne(PlanRequest* request) const;

  Reading reading_;
  std::vector<Given> given_;  // One for each row of the table.
  std::set<std::string> optional_dims_;
  bool is_one_by_one_ = false;  // --no-restore
};

// Returns whether the flag limits a plan's memory or its added time: "--budget", "--added-time". A
// command line has one of them at most.
bool IsBudgetFlag(std::string_view flag);

// Returns the flag of a field as messages name it: "--budget". A setting that is not a field of a
// request has no flag and is returned unchanged.
std::string FlagOf(const std::string& field);

// Returns the flags that make up `request`, each preceded by a blank.
std::string FlagsFor(const PlanRequest& request);

// Returns the error's message and its remedy: "no plan; try --budget 8611000000".
std::string MessageOf(const Error& error);

}  // namespace ckplan
