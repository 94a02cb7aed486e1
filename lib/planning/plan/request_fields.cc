#include "lib/planning/plan/request_fields.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lib/base/check.h"

namespace ckplan {
namespace {

using Part = RequestField::Part;
using InFile = RequestField::InFile;
using InTables = FieldScope::InTables;

constexpr std::array<std::string_view, 3> kSpokenGradients = {
    "with the constants", "throughout the step", "once computed"};
constexpr std::array<std::string_view, 3> kSpokenTypes = {"the model's", "float32", "bf16"};
constexpr std::array<std::string_view, 3> kSpokenFused = {"none", "attention",
                                                          "PyTorch's attention"};
constexpr std::array<std::string_view, 2> kSpokenRestored = {"none", "PyTorch's operations"};
constexpr std::array<std::string_view, 2> kSpokenMasterWeights = {"without", "with"};
constexpr std::array<std::string_view, 3> kSpokenBackward = {"by default", "by node", "by input"};
constexpr std::array<std::string_view, 2> kSpokenLiveness = {"by segment", "after their last read"};

template <auto kMember>
constexpr WordsMember WordsOf(std::span<const std::string_view> words) {
  return {words, [](const PlanRequest& request) { return static_cast<size_t>(request.*kMember); },
          [](PlanRequest* request, size_t word) {
            using Enum = std::remove_reference_t<decltype(request->*kMember)>;
            request->*kMember = static_cast<Enum>(word);
          }};
}

const std::array kFields = {
    RequestField{.name = "dims",
                 .key = "dims",
                 .part = Part::kModel,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::dims,
                 .difference = "the plans use different dimensions ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "dimensions are", .not_for_graph_files = "has none"}},
    RequestField{.name = "input_shapes",
                 .key = "input_shapes",
                 .part = Part::kModel,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::input_shapes,
                 .difference = "the plans use different input shapes ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "input shapes are", .not_for_graph_files = "has none"}},
    RequestField{.name = "batch",
                 .key = "batch",
                 .part = Part::kModel,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::batch,
                 .difference = "the plans use different batch sizes ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "a batch is",
                           .not_for_graph_files = "has fixed sizes",
                           .in_tables = InTables::kCounting}},
    RequestField{.name = "algorithm",
                 .key = "algorithm",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::algorithm},
    RequestField{.name = "objective",
                 .key = "objective",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = WordsOf<&PlanRequest::objective>(kObjectiveWords),
                 .scope = {.is_of_algorithm = true}},
    RequestField{.name = "granularity",
                 .key = "granularity",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::granularity>(kGranularityWords)},
    RequestField{.name = "effort",
                 .key = "effort",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::effort>(kSearchEffortWords)},
    RequestField{.name = "order",
                 .key = "order",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::order>(kStepOrderWords),
                 .scope = {.is_of_algorithm = true}},
    RequestField{.name = "budget",
                 .key = "budget_bytes",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::budget},
    RequestField{.name = "total_budget",
                 .key = "",
                 .part = Part::kPlan,
                 .in_file = InFile::kNever,
                 .member = &PlanRequest::total_budget},
    RequestField{.name = "memory",
                 .key = "",
                 .part = Part::kPlan,
                 .in_file = InFile::kNever,
                 .member = &PlanRequest::memory},
    RequestField{.name = "reserve",
                 .key = "",
                 .part = Part::kPlan,
                 .in_file = InFile::kNever,
                 .member = &PlanRequest::reserve},
    RequestField{.name = "added_time",
                 .key = "",
                 .part = Part::kPlan,
                 .in_file = InFile::kNever,
                 .member = &PlanRequest::added_time},
    RequestField{.name = "paper_budget",
                 .key = "paper_budget_bytes",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::paper_budget},
    RequestField{.name = "keep",
                 .key = "keep",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::keep,
                 .scope = {.in_tables = InTables::kPatterns},
                 .words = "kept"},
    RequestField{.name = "recompute",
                 .key = "recompute",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::recompute,
                 .scope = {.in_tables = InTables::kPatterns},
                 .words = "recomputed"},
    RequestField{.name = "never_rerun",
                 .key = "never_rerun",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::never_rerun,
                 .scope = {.in_tables = InTables::kPatterns},
                 .words = "never run again"},
    RequestField{.name = "never_offload",
                 .key = "never_offload",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::never_offload,
                 .scope = {.is_of_offload = true, .in_tables = InTables::kPatterns},
                 .words = "never on the host"},
    RequestField{.name = "host_memory",
                 .key = "host_budget_bytes",
                 .part = Part::kPlan,
                 .in_file = InFile::kWithOffload,
                 .member = &PlanRequest::host_budget,
                 .scope = {.is_of_offload = true, .in_tables = InTables::kCounting},
                 .words = "host memory"},
    RequestField{.name = "decisions",
                 .key = "decisions",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::decisions,
                 .scope = {.is_of_algorithm = true}},
    RequestField{.name = "setting",
                 .key = "setting",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::setting,
                 .scope = {.is_of_algorithm = true}},
    RequestField{.name = "cost_model",
                 .key = "cost_model",
                 .part = Part::kGraph,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::cost_model,
                 .difference = "the plans use different cost models (\"{}\" and \"{}\"), so their "
                               "times are not comparable"},
    RequestField{.name = "cost_unit",
                 .key = "cost_unit",
                 .part = Part::kGraph,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::cost_unit},
    RequestField{
        .name = "workspaces",
        .key = "workspaces",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::workspaces,
        .difference =
            "the plans use different workspaces ({} and {}), which alone changes their peaks",
        .words = "workspaces from"},
    RequestField{
        .name = "autograd",
        .key = "autograd",
        .part = Part::kGraph,
        .in_file = InFile::kRequired,
        .member = WordsOf<&PlanRequest::autograd>(kAutogradWords),
        .difference =
            "the plans use different autograd models ({} and {}), which alone changes their bytes",
        .scope = {.subject = "an autograd model is",
                  .not_for_graph_files = "states what its backward reads"}},
    RequestField{
        .name = "activation_type",
        .key = "activation_type",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = WordsOf<&PlanRequest::activation_type>(kActivationTypeWords),
        .difference = "the plans use different activation types ({} and {}), which alone changes "
                      "their bytes and times",
        .spoken = kSpokenTypes,
        .scope = {.subject = "an activation type is", .not_for_graph_files = "has fixed sizes"},
        .words = "activation type"},
    RequestField{.name = "fused",
                 .key = "fused",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::fused>(kFusedOperatorsWords),
                 .difference = "the plans use different fused operators ({} and {}), which alone "
                               "changes their bytes and times",
                 .spoken = kSpokenFused,
                 .scope = {.subject = "fused operators are",
                           .not_for_graph_files = "has fixed nodes",
                           .in_tables = InTables::kCounting},
                 .words = "fused operators"},
    RequestField{.name = "restored",
                 .key = "restored",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::restored>(kRestoredOperatorsWords),
                 .difference = "the plans use different restored operators ({} and {}), which "
                               "alone changes their bytes and times",
                 .spoken = kSpokenRestored,
                 .scope = {.subject = "restored operators are",
                           .not_for_graph_files = "has fixed nodes",
                           .in_tables = InTables::kCounting},
                 .words = "restored operators"},
    RequestField{.name = "rounding",
                 .key = "rounding",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::rounding>(kRoundingWords),
                 .difference = "the plans use different gradients of rounding ({} and {}), which "
                               "alone changes their bytes and times",
                 .scope = {.subject = "the gradient of rounding is",
                           .not_for_graph_files = "states which tensors have gradients",
                           .in_tables = InTables::kCounting},
                 .words = "gradient of rounding"},
    RequestField{.name = "gradients",
                 .key = "gradients",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::gradients>(kParameterGradientsWords),
                 .difference = "the plans use different accounting of parameter gradients ({} and "
                               "{}), which alone changes their peaks or needs",
                 .spoken = kSpokenGradients,
                 .scope = {.in_tables = InTables::kCounting},
                 .words = "gradients of parameters"},
    RequestField{.name = "offload",
                 .key = "offload",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::offload,
                 .difference = "the plans use different links to the host ({} and {}), which alone "
                               "changes their times",
                 .scope = {.in_tables = InTables::kCounting},
                 .words = "offload over"},
    RequestField{.name = "outputs",
                 .key = "outputs",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::outputs,
                 .difference = "the plans use different outputs ({} and {}), which alone changes "
                               "their bytes and times",
                 .scope = {.subject = "other outputs are",
                           .not_for_graph_files = "has fixed nodes",
                           .in_tables = InTables::kCounting},
                 .words = "ends at"},
    RequestField{.name = "weights",
                 .key = "weights",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::weights,
                 .difference = "the plans use different inputs as parameters ({} and {}), which "
                               "alone changes their bytes",
                 .scope = {.subject = "inputs that are parameters are",
                           .not_for_graph_files = "has fixed parameters",
                           .in_tables = InTables::kPatterns},
                 .words = "inputs as parameters"},
    RequestField{.name = "set_inputs",
                 .key = "set_inputs",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::set_inputs,
                 .difference = "the plans use different input values ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "input values are",
                           .not_for_graph_files = "has fixed nodes",
                           .in_tables = InTables::kCounting},
                 .words = "input values"},
    RequestField{.name = "op_shapes",
                 .key = "op_shapes",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::op_shapes,
                 .difference = "the plans use different operator descriptions ({} and {}), which "
                               "alone changes their bytes and times",
                 .scope = {.subject = "operator descriptions are",
                           .not_for_graph_files = "has fixed nodes",
                           .in_tables = InTables::kCounting},
                 .words = "operator descriptions"},
    RequestField{.name = "freeze",
                 .key = "freeze",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::freeze,
                 .difference = "the plans use different frozen parameters ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "frozen parameters are",
                           .not_for_graph_files = "has fixed gradient sizes",
                           .in_tables = InTables::kPatterns},
                 .words = "frozen"},
    RequestField{.name = "sharding",
                 .key = "sharding",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::sharding,
                 .difference = "the plans use different sharding ({} and {}), which alone changes "
                               "their peaks with constants",
                 .scope = {.subject = "sharding is",
                           .not_for_graph_files = "has only the sum of its parameters",
                           .in_tables = InTables::kCounting},
                 .words = "sharding"},
    RequestField{.name = "pipeline",
                 .key = "pipeline",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::pipeline,
                 .difference = "the plans use different pipeline stages ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.subject = "pipeline stages are",
                           .not_for_graph_files = "has only the sum of its parameters",
                           .in_tables = InTables::kCounting},
                 .words = "stage"},
    RequestField{.name = "micro_batches",
                 .key = "micro_batches",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::micro_batches,
                 .difference = "the plans use different numbers of micro-batches ({} and {}), "
                               "which alone changes their bytes",
                 .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting},
                 .words = "micro-batches"},
    RequestField{.name = "schedule",
                 .key = "pipeline_schedule",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::schedule>(kPipelineScheduleWords),
                 .difference = "the plans use different pipeline schedules ({} and {}), which "
                               "alone changes their bytes",
                 .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting}},
    RequestField{.name = "stage_cuts",
                 .key = "stage_cuts",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::stage_cuts,
                 .difference = "the plans use different stage cuts ({} and {}), which alone "
                               "changes their bytes and times",
                 .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting},
                 .words = "stages begin at"},
    RequestField{.name = "optimizer",
                 .key = "optimizer",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = WordsOf<&PlanRequest::optimizer>(kOptimizerWords),
                 .difference = "the plans use different optimizers ({} and {}), which alone "
                               "changes their peaks with constants"},
    RequestField{.name = "master_weights",
                 .key = "master_weights",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::has_master_weights,
                 .difference = "the plans use different optimizer states ({} and {} master "
                               "weights), which alone changes their peaks with constants",
                 .spoken = kSpokenMasterWeights,
                 .scope = {.in_tables = InTables::kCounting}},
    RequestField{.name = "align",
                 .key = "align_bytes",
                 .part = Part::kGraph,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::align_bytes,
                 .difference = "the plans use different buffer alignments ({} and {}), which alone "
                               "changes their bytes",
                 .words = "buffer alignment (bytes)"},
    RequestField{.name = "liveness",
                 .key = "liveness",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::uses_liveness,
                 .difference = "the plans use different rules for releasing tensors ({} and {}), "
                               "which alone changes their bytes",
                 .spoken = kSpokenLiveness,
                 .words = "tensors released"},
    RequestField{
        .name = "backward",
        .key = "backward",
        .part = Part::kPlan,
        .in_file = InFile::kUnlessDefault,
        .member = WordsOf<&PlanRequest::backward>(kBackwardStepsWords),
        .difference =
            "the plans use different backward steps ({} and {}), which alone changes their bytes",
        .spoken = kSpokenBackward,
        .words = "gradients computed"},
};

}  // namespace

PlanRequest RequestAsPyTorchRuns() {
  PlanRequest request;
  request.autograd = Autograd::kTorchCuda;
  request.fused = FusedOperators::kCaptured;
  request.restored = RestoredOperators::kCaptured;
  request.optimizer = Optimizer::kAdamW;
  request.implied = {"autograd", "fused", "optimizer", "restored"};
  return request;
}

std::span<const RequestField> RequestFields() { return kFields; }

const RequestField& FieldOf(std::string_view name) {
  const auto found = std::find_if(kFields.begin(), kFields.end(),
                                  [&](const RequestField& field) { return field.name == name; });
  CKPLAN_CHECK(found != kFields.end(), "the table contains the field");
  return *found;
}

}  // namespace ckplan
