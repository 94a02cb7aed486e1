// The table of the fields of a request. It has the name of each field, its key in plan files, the
// words it takes, and what a difference in it means for the comparison of two plans. Command lines,
// plan files, comparisons and the command that makes a plan again are driven by the table, so that
// a new field is added in few places: docs/extending.md lists them.
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

// A field that takes one of a few words.
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

// The scope of a field: the sources and algorithms that it applies to, and the tables that show it.
struct FieldScope {
  // The subject of the sentence that refuses the field, with its verb: "frozen parameters are".
  std::string_view subject = {};
  // The reason why a graph file does not take the field, such as "has none". Empty if it does.
  std::string_view not_for_graph_files = {};
  // True if the field describes a stage of a pipeline. It does not apply to a whole model.
  bool is_of_pipelines = false;
  // True if the field has no meaning for plans that may not move values to the host.
  bool is_of_offload = false;
  // True if the field instructs the named algorithm. Other algorithms are asked without it.
  bool is_of_algorithm = false;
  // The place in tables of many plans, as text and as JSON, where the field stands if it does not
  // have its default.
  enum class InTables { kNo, kPatterns, kCounting } in_tables = InTables::kNo;
};

struct RequestField {
  enum class Part {
    kModel,  // Which variant of the model is planned; stored under "model" in plan files.
    kGraph,  // How the model becomes a graph.
    kPlan,   // How the graph is planned.
  };
  enum class InFile { kRequired, kUnlessDefault, kWithOffload, kNever };

  std::string_view name;  // The name by which errors (Remedy) and programs refer to the field.
  std::string_view key;   // The key in plan files, if `in_file` is not kNever.
  Part part = Part::kPlan;
  // Whether plan files have the field; kUnlessDefault: only if it is not the default;
  // kWithOffload: if the plan may move values to the host.
  InFile in_file = InFile::kRequired;
  RequestMember member;
  // The sentence that a comparison prints for two plans that differ in this field, with {} for each
  // of the two values. Empty: the difference needs no warning.
  std::string_view difference = {};
  // What that sentence calls the values of a bool or of words, if not by the words themselves.
  std::span<const std::string_view> spoken = {};
  FieldScope scope = {};
  // What people read before the value, unless it is the name with blanks for underscores.
  std::string_view words = {};
};

// In the order in which plan files list them.
std::span<const RequestField> RequestFields();
const RequestField& FieldOf(std::string_view name);  // A field of that name must exist.

// The value as people type it: "60%", "adam". Dims, shapes and patterns give one text for each; a
// field that has its default gives none.
std::vector<std::string> TextsOf(const RequestField& field, const PlanRequest& request);
// The field and its value in words: "cost model flops:a100-40g", "frozen *.weight", "N=64".
std::string PhraseOf(const RequestField& field, const PlanRequest& request);
bool IsDefault(const RequestField& field, const PlanRequest& request);
void ResetField(const RequestField& field, PlanRequest* request);
void CopyField(const RequestField& field, const PlanRequest& from, PlanRequest* to);

// One sentence for each field that makes two plans incomparable as they are.
std::vector<std::string> DifferencesOf(const PlanRequest& older, const PlanRequest& newer);

// A field in which two requests differ, including fields that do not make figures incomparable.
struct RequestDifference {
  std::string_view field;  // RequestField::name
  // As people type it: "60%", "adam"; empty where nothing is asked for.
  std::string older;
  std::string newer;
  // As it is read: "1.50 GiB (1610612736 bytes)", "none".
  std::string spoken_older;
  std::string spoken_newer;
};
// In the order of the table. Two sets of decisions are "given" and "others".
std::vector<RequestDifference> EachDifference(const PlanRequest& older, const PlanRequest& newer);

// Whether the times of both plans are in the same unit and from the same cost model.
bool HaveSameCosts(const PlanRequest& a, const PlanRequest& b);

}  // namespace ckplan
