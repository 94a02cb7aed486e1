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
    "with the constants", "throughout the step", "as they arrive"};
constexpr std::array<std::string_view, 3> kSpokenTypes = {"the model says", "float32", "bf16"};
constexpr std::array<std::string_view, 3> kSpokenFused = {
    "each operator apart", "attention as one operator", "PyTorch's attention as one operator"};
constexpr std::array<std::string_view, 2> kSpokenRestored = {"operators as the file has them",
                                                             "PyTorch's operations as one"};
constexpr std::array<std::string_view, 2> kSpokenMasterWeights = {"without", "with"};
constexpr std::array<std::string_view, 3> kSpokenBackward = {"by default", "by node", "by input"};
constexpr std::array<std::string_view, 2> kSpokenLiveness = {"a segment at a time",
                                                             "as soon as nothing reads them"};

template <auto kMember>
constexpr WordsMember WordsOf(std::span<const std::string_view> words) {
  return {words, [](const PlanRequest& request) { return static_cast<size_t>(request.*kMember); },
          [](PlanRequest* request, size_t word) {
            using Enum = std::remove_reference_t<decltype(request->*kMember)>;
            request->*kMember = static_cast<Enum>(word);
          }};
}

const std::array kFields = {
    RequestField{
        .name = "dims",
        .key = "dims",
        .part = Part::kModel,
        .in_file = InFile::kRequired,
        .member = &PlanRequest::dims,
        .difference =
            "the plans are for the dimensions {} and {}; that alone changes their bytes and times",
        .scope = {.subject = "dimensions are", .not_for_graph_files = "has none"}},
    RequestField{.name = "input_shapes",
                 .key = "input_shapes",
                 .part = Part::kModel,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::input_shapes,
                 .difference = "the plans are for the input shapes {} and {}; that alone changes "
                               "their bytes and times",
                 .scope = {.subject = "input shapes are", .not_for_graph_files = "has none"}},
    RequestField{
        .name = "batch",
        .key = "batch",
        .part = Part::kModel,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::batch,
        .difference =
            "the plans are for the batches {} and {}; that alone changes their bytes and times",
        .scope = {.subject = "a batch is",
                  .not_for_graph_files = "has sizes of its own",
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
    RequestField{
        .name = "cost_model",
        .key = "cost_model",
        .part = Part::kGraph,
        .in_file = InFile::kRequired,
        .member = &PlanRequest::cost_model,
        .difference = "the plans' costs are by \"{}\" and \"{}\"; their times do not compare"},
    RequestField{.name = "cost_unit",
                 .key = "cost_unit",
                 .part = Part::kGraph,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::cost_unit},
    RequestField{.name = "workspaces",
                 .key = "workspaces",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::workspaces,
                 .difference = "the plans' workspaces are from {} and {}; that alone changes their "
                               "peaks",
                 .words = "workspaces from"},
    RequestField{
        .name = "autograd",
        .key = "autograd",
        .part = Part::kGraph,
        .in_file = InFile::kRequired,
        .member = WordsOf<&PlanRequest::autograd>(kAutogradWords),
        .difference = "the plans are for {} and for {} autograd; that alone changes their bytes",
        .scope = {.subject = "a choice of autograd is",
                  .not_for_graph_files = "says itself what its backward reads"}},
    RequestField{
        .name = "activation_type",
        .key = "activation_type",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = WordsOf<&PlanRequest::activation_type>(kActivationTypeWords),
        .difference =
            "the plans store activations as {} and as {}; that alone changes their bytes and times",
        .spoken = kSpokenTypes,
        .scope = {.subject = "a type of activations is",
                  .not_for_graph_files = "has sizes of its own"},
        .words = "activations stored as"},
    RequestField{.name = "fused",
                 .key = "fused",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::fused>(kFusedOperatorsWords),
                 .difference = "the plans read {} and {}; that alone changes their bytes and times",
                 .spoken = kSpokenFused,
                 .scope = {.subject = "fused operators are",
                           .not_for_graph_files = "has its nodes as they are",
                           .in_tables = InTables::kCounting},
                 .words = "operators read as one"},
    RequestField{.name = "restored",
                 .key = "restored",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::restored>(kRestoredOperatorsWords),
                 .difference = "the plans read {} and {}; that alone changes their bytes and times",
                 .spoken = kSpokenRestored,
                 .scope = {.subject = "restored operators are",
                           .not_for_graph_files = "has its nodes as they are",
                           .in_tables = InTables::kCounting},
                 .words = "operators restored"},
    RequestField{
        .name = "rounding",
        .key = "rounding",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = WordsOf<&PlanRequest::rounding>(kRoundingWords),
        .difference =
            "the plans take rounding as {} and as {}; that alone changes their bytes and times",
        .scope = {.subject = "the gradient of rounding is",
                  .not_for_graph_files = "says itself which tensors have gradients",
                  .in_tables = InTables::kCounting},
        .words = "gradient of rounding"},
    RequestField{
        .name = "gradients",
        .key = "gradients",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = WordsOf<&PlanRequest::gradients>(kParameterGradientsWords),
        .difference =
            "the plans count gradients of parameters {} and {}; that alone changes their peaks or "
            "needs",
        .spoken = kSpokenGradients,
        .scope = {.in_tables = InTables::kCounting},
        .words = "gradients of parameters"},
    RequestField{.name = "offload",
                 .key = "offload",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::offload,
                 .difference = "the plans' links to the host are {} and {}; that alone changes "
                               "their times",
                 .scope = {.in_tables = InTables::kCounting},
                 .words = "values moved to the host over"},
    RequestField{
        .name = "outputs",
        .key = "outputs",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::outputs,
        .difference = "the plans end at {} and at {}; that alone changes their bytes and times",
        .scope = {.subject = "other outputs are",
                  .not_for_graph_files = "has its nodes as they are",
                  .in_tables = InTables::kCounting},
        .words = "ends at"},
    RequestField{
        .name = "weights",
        .key = "weights",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::weights,
        .difference = "the plans take {} and {} for parameters; that alone changes their bytes",
        .scope = {.subject = "inputs that are parameters are",
                  .not_for_graph_files = "has its parameters as they are",
                  .in_tables = InTables::kPatterns},
        .words = "parameters among the inputs"},
    RequestField{.name = "set_inputs",
                 .key = "set_inputs",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::set_inputs,
                 .difference =
                     "the plans set the inputs {} and {}; that alone changes their bytes and times",
                 .scope = {.subject = "contents of inputs are",
                           .not_for_graph_files = "has its nodes as they are",
                           .in_tables = InTables::kCounting},
                 .words = "inputs set to"},
    RequestField{.name = "op_shapes",
                 .key = "op_shapes",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::op_shapes,
                 .difference = "the plans describe operators as {} and as {}; that alone changes "
                               "their bytes and times",
                 .scope = {.subject = "descriptions of operators are",
                           .not_for_graph_files = "has its nodes as they are",
                           .in_tables = InTables::kCounting},
                 .words = "operators described as"},
    RequestField{
        .name = "freeze",
        .key = "freeze",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::freeze,
        .difference =
            "the plans freeze the parameters {} and {}; that alone changes their bytes and times",
        .scope = {.subject = "frozen parameters are",
                  .not_for_graph_files = "has its bytes of gradients as they are",
                  .in_tables = InTables::kPatterns},
        .words = "frozen"},
    RequestField{.name = "sharding",
                 .key = "sharding",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::sharding,
                 .difference = "the plans divide constants among devices as {} and as {}; that "
                               "alone changes their peaks with constants",
                 .scope = {.subject = "a division among devices is",
                           .not_for_graph_files = "has the sum of its parameters, and not each",
                           .in_tables = InTables::kCounting},
                 .words = "divided among devices as"},
    RequestField{
        .name = "pipeline",
        .key = "pipeline",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::pipeline,
        .difference =
            "the plans are for the stages {} and {}; that alone changes their bytes and times",
        .scope = {.subject = "stages of a pipeline are",
                  .not_for_graph_files = "has the sum of its parameters, and not each",
                  .in_tables = InTables::kCounting},
        .words = "stage"},
    RequestField{
        .name = "micro_batches",
        .key = "micro_batches",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::micro_batches,
        .difference =
            "the plans' numbers of micro-batches are {} and {}; that alone changes their bytes",
        .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting},
        .words = "micro-batches"},
    RequestField{.name = "schedule",
                 .key = "pipeline_schedule",
                 .part = Part::kGraph,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::schedule>(kPipelineScheduleWords),
                 .difference = "the plans' micro-batches follow the schedules {} and {}; that "
                               "alone changes their bytes",
                 .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting}},
    RequestField{
        .name = "stage_cuts",
        .key = "stage_cuts",
        .part = Part::kGraph,
        .in_file = InFile::kUnlessDefault,
        .member = &PlanRequest::stage_cuts,
        .difference =
            "the plans' stages begin at {} and at {}; that alone changes their bytes and times",
        .scope = {.is_of_pipelines = true, .in_tables = InTables::kCounting},
        .words = "stages begin at"},
    RequestField{.name = "optimizer",
                 .key = "optimizer",
                 .part = Part::kPlan,
                 .in_file = InFile::kRequired,
                 .member = WordsOf<&PlanRequest::optimizer>(kOptimizerWords),
                 .difference = "the plans count the state of the optimizers {} and {}; that alone "
                               "changes their peaks with constants"},
    RequestField{.name = "master_weights",
                 .key = "master_weights",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = &PlanRequest::has_master_weights,
                 .difference =
                     "the plans count the state of the optimizer {} and {} master weights; "
                     "that alone changes their peaks with constants",
                 .spoken = kSpokenMasterWeights,
                 .scope = {.in_tables = InTables::kCounting}},
    RequestField{.name = "align",
                 .key = "align_bytes",
                 .part = Part::kGraph,
                 .in_file = InFile::kRequired,
                 .member = &PlanRequest::align_bytes,
                 .difference = "the plans round buffers up to multiples of {} and of {} bytes; "
                               "that alone changes their bytes",
                 .words = "bytes of buffers rounded up to multiples of"},
    RequestField{
        .name = "liveness",
        .key = "liveness",
        .part = Part::kPlan,
        .in_file = InFile::kRequired,
        .member = &PlanRequest::uses_liveness,
        .difference = "the plans release tensors {} and {}; that alone changes their bytes",
        .spoken = kSpokenLiveness,
        .words = "tensors released"},
    RequestField{.name = "backward",
                 .key = "backward",
                 .part = Part::kPlan,
                 .in_file = InFile::kUnlessDefault,
                 .member = WordsOf<&PlanRequest::backward>(kBackwardStepsWords),
                 .difference = "the plans make gradients {} and {}; that alone changes their bytes",
                 .spoken = kSpokenBackward,
                 .words = "gradients made"},
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
  CKPLAN_CHECK(found != kFields.end(), "a field is asked for by a name of the table");
  return *found;
}

}  // namespace ckplan
