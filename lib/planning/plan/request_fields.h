// The table of request fields: the name of each field, its key in plan files, its values, and what
// a difference means when two plans are compared. Command lines, plan files, comparisons and the
// command that reproduces a plan use the table, so that a new field is added in few places:
// docs/extending.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/planning/plan/request.h"

namespace ckplan {

// A field whose value is one of a few words.
struct WordsMember {
  std::span<const std::string_view> words;
  size_t (*get)(const PlanRequest& request);
  void (*set)(PlanRequest* request, size_t word);
};

using RequestMember = std::variant<
    std::string PlanRequest::*, int64_t PlanRequest::*, bool PlanRequest::*, Budget PlanRequest::*,
    DimSizes PlanRequest::*, InputShapes PlanRequest::*, NamePatterns PlanRequest::*,
    std::optional<Sharding> PlanRequest::*, std::optional<PipelineStage> PlanRequest::*,
    std::optional<KnobSetting> PlanRequest::*, std::optional<Decisions> PlanRequest::*,
    std::optional<Link> PlanRequest::*, std::optional<Bytes> PlanRequest::*, WordsMember>;

// Which sources and algorithms a field applies to, and which tables show it.
struct FieldScope {
  // The start of the error that refuses the field, with its verb: "frozen parameters are".
  std::string_view subject = {};
  // Why a graph file can't have the field, such as "has none". Empty if it can.
  std::string_view not_for_graph_files = {};
  // True if the field describes a pipeline stage and does not apply to a whole model.
  bool is_of_pipelines = false;
  // True if the field applies only to plans that may move values to the host.
  bool is_of_offload = false;
  // True if the field is for the named algorithm. It is not passed on to other algorithms.
  bool is_of_algorithm = false;
  // Where tables of many plans, as text and as JSON, show the field if it is not the default.
  enum class InTables { kNo, kPatterns, kCounting } in_tables = InTables::kNo;
};

struct RequestField {
  enum class Part {
    kModel,  // The model's variant; stored under "model" in plan files.
    kGraph,  // How the model becomes a graph.
    kPlan,   // How the graph is planned.
  };
  enum class InFile { kRequired, kUnlessDefault, kWithOffload, kNever };

  std::string_view name;  // The name in errors (Remedy) and programs.
  std::string_view key;   // The key in plan files, if `in_file` is not kNever.
  Part part = Part::kPlan;
  // Whether plan files contain the field. kUnlessDefault: only if it is not the default;
  // kWithOffload: only if the plan may move values to the host.
  InFile in_file = InFile::kRequired;
  RequestMember member;
  // The warning when two plans differ in this field, with {} for each of the two values. Empty if
  // the difference needs no warning.
  std::string_view difference = {};
  // Replaces the values of a bool or of words in that warning.
  std::span<const std::string_view> spoken = {};
  FieldScope scope = {};
  // The text before the value; by default the name with spaces for underscores.
  std::string_view words = {};
};

// In the order in which plan files list them.
std::span<const RequestField> RequestFields();
const RequestField& FieldOf(std::string_view name);  // A field of that name must exist.

// The value as users type it: "60%", "adam". Dims, shapes and patterns give one text each; a
// default value gives none.
std::vector<std::string> TextsOf(const RequestField& field, const PlanRequest& request);
// The field and its value as text: "cost model flops:a100-40g", "frozen *.weight", "N=64".
std::string PhraseOf(const RequestField& field, const PlanRequest& request);
bool IsDefault(const RequestField& field, const PlanRequest& request);
void ResetField(const RequestField& field, PlanRequest* request);
void CopyField(const RequestField& field, const PlanRequest& from, PlanRequest* to);

// Returns the warnings about fields that make two plans incomparable.
std::vector<std::string> DifferencesOf(const PlanRequest& older, const PlanRequest& newer);

// A field in which two requests differ, whether or not it makes them incomparable.
struct RequestDifference {
  std::string_view field;  // RequestField::name
  // As users type it: "60%", "adam"; empty if unset.
  std::string older;
  std::string newer;
  // As shown to users: "1.50 GiB (1610612736 bytes)", "none".
  std::string spoken_older;
  std::string spoken_newer;
};
// In the order of the table. Two different sets of decisions are "given" and "others".
std::vector<RequestDifference> ListDifferences(const PlanRequest& older, const PlanRequest& newer);

// True if the times of both plans have the same unit and cost model.
bool HaveSameCosts(const PlanRequest& a, const PlanRequest& b);

}  // namespace ckplan
