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

class RequestFlags {
 public:
  enum class Group {
    kAlgorithm,  // --algo, where one algorithm is named.
    kPlanning,   // --budget to --no-liveness
    kReading,    // -D to --align
  };
  // Declares the flags of a group, or that of one field, perhaps with another help.
  void Add(CommandLine& line, Group group);
  void Add(CommandLine& line, std::string_view field, std::string_view form = {},
           std::string_view help = {});

  // What was given. kUsage: a value that cannot be read, an unknown algorithm, several budgets.
  Result<PlanRequest> Read() const;

  // The flags of a field as they were typed: "-D N=8 -D T=2", or nothing.
  std::string Typed(std::string_view field) const;
  // The value of a field as it was typed, if it was.
  std::optional<std::string> ValueOf(std::string_view field) const;

 private:
  struct Given {
    std::optional<std::string> text;
    std::vector<std::string> list;
    std::string word;  // Of a choice; empty where its flag was not declared.
    bool is_set = false;
  };
  static constexpr size_t kCount = 14;
  static Result<Done> ReadField(size_t row, const Given& given, PlanRequest* request);

  std::array<Given, kCount> given_;
};

// "--budget", as messages name it. A setting that is no field of a request is its own name.
std::string FlagOf(const std::string& field);

// The flags that ask for all that `request` asks for, each with a blank before it.
std::string FlagsFor(const PlanRequest& request);

// The error's message and its remedy: "no plan; try --budget 8611000000".
std::string MessageOf(const Error& error);

}  // namespace ckplan
