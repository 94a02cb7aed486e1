#include "cli/ckplan/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/files/input/plan_file.h"
#include "lib/files/model/annotate.h"
#include "lib/planning/algorithms/feng/division_tree_dot.h"
#include "lib/planning/algorithms/hong/step_prediction.h"
#include "lib/planning/planner/model_form.h"

namespace ckplan {
namespace {

struct Content {
  std::string path;
  std::string text;
};

// `pending` are files that are written already and appear together with the others.
Result<Done> WriteContents(const std::vector<Content>& contents, PendingFiles pending,
                           const Screen& screen) {
  std::vector<OutputFile> files;
  for (const Content& content : contents) {
    if (content.path != kStandardStream) files.push_back({content.path, content.text});
  }
  CKPLAN_RETURN_IF_ERROR(FinishFiles(files, pending));
  for (const Content& content : contents) {
    if (content.path == kStandardStream) CKPLAN_RETURN_IF_ERROR(screen.Print(content.text));
  }
  return CommitFiles(pending);
}

Result<const Emitter*> EmitterFor(std::string_view name, EmitSubject subject) {
  Result<const Emitter*> found = FindEmitter(name);
  if (!found.ok()) {
    return MakeError(ErrorCode::kUsage, fmt::format("--emit: {}", found.error().message));
  }
  if ((*found)->Takes(subject)) return found;
  const std::string_view rest =
      subject == EmitSubject::kGraph ? "plans; a graph is" : "one plan; two plans are written as";
  return MakeError(ErrorCode::kUsage, fmt::format("--emit {} is for {} {}", name, rest,
                                                  EmitterNames(subject, " or ")));
}

// A plan or drawing with a model's file name would be mistaken for one.
Result<Done> CheckNoModelName(const Emitter& emitter, std::string_view path) {
  if (emitter.needs == Emitter::Needs::kModel) return Done{};
  const std::string lower = LowerCase(path);
  for (const std::string_view ending :
       {".onnx", ".onnxtxt", ".pb", ".pt", ".pth", ".safetensors", ".gguf"}) {
    if (!lower.ends_with(ending)) continue;
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("refusing to write {0} to \"{1}\", the name of a model; -o "
                    "plan.json writes a plan, and ckplan apply writes it into its model",
                    emitter.name, path));
  }
  return Done{};
}

// Checks the options about the files that a command reads.
std::vector<InputFile> ListInputFiles(const Options& options) {
  std::vector<InputFile> inputs;
  for (const std::string& plan : {options.plan, options.newer_plan}) {
    if (!plan.empty()) inputs.push_back({"the plan", plan});
  }
  std::vector<std::string> sources = options.sources;
  if (!options.source.empty()) sources.push_back(options.source);
  for (const std::string& source : sources) {
    for (InputFile& input : InputsOf(source)) inputs.push_back(std::move(input));
  }
  if (const auto costs = options.request.CostFile()) inputs.push_back({"the costs", *costs});
  if (const auto file = options.request.ValueOf("workspaces")) {
    inputs.push_back({"the workspaces", *file});
  }
  if (const auto file = options.request.ValueOf("decisions")) {
    inputs.push_back({"the decisions", *file});
  }
  return inputs;
}

}  // namespace

EmitSource EmitSourceOf(const Source& source, const Plan* plan, Annotator annotate) {
  static constexpr PaperPictures kPapers = {
      WriteDivisionTreeDot, {kStepPredictionName, PredictSteps, kWhyNoJointPrediction}};
  EmitSource emitted{
      .step = source.step(), .plan = plan, .annotate = std::move(annotate), .papers = &kPapers};
  if (plan == nullptr) return emitted;
  emitted.account = [&source, plan] { return AccountForPlan(source, *plan); };
  emitted.memory = source.request.memory;
  if (source.joint && source.step().has_forward()) {
    emitted.in_model_form = ToModelForm(source, *plan);
  }
  return emitted;
}

Result<Outputs> Outputs::Create(const Options& options, std::string_view main,
                                EmitSubject subject) {
  Outputs outputs;
  if (options.output) outputs.items_.push_back({FindEmitter(main).value(), *options.output});
  for (const std::string& emit : options.emits) {
    const size_t equals = emit.find('=');
    if (equals == std::string::npos || equals + 1 == emit.size()) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--emit: \"{}\" is not of the form KIND=FILE", emit));
    }
    CKPLAN_ASSIGN_OR_RETURN(const Emitter* emitter, EmitterFor(emit.substr(0, equals), subject));
    outputs.items_.push_back({emitter, emit.substr(equals + 1)});
  }
  CKPLAN_RETURN_IF_ERROR(outputs.CheckPaths(options.format == "text" ? 0 : 1));
  if (options.format != "text") outputs.prints_data_ = true;
  if (!outputs.empty()) CKPLAN_RETURN_IF_ERROR(outputs.CheckApartFrom(ListInputFiles(options)));
  for (const Item& item : outputs.items_) {
    CKPLAN_RETURN_IF_ERROR(CheckNoModelName(*item.emitter, item.path));
  }
  return outputs;
}

Result<Done> Outputs::CheckPaths(int for_stdout) const {
  for (const Item& item : items_) {
    if (item.path.empty()) return MakeError(ErrorCode::kUsage, "-o: the file has no name");
    if (item.path == kStandardStream && ++for_stdout > 1) {
      return MakeError(ErrorCode::kUsage,
                       "only one output can go to standard output; write the others to files");
    }
    if (item.path == kStandardStream && item.emitter->needs == Emitter::Needs::kModel) {
      return MakeError(ErrorCode::kUsage, "an ONNX file cannot go to standard output; name a file");
    }
    if (item.path == kStandardStream && item.emitter->is_binary) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--emit {} writes binary data; name a file instead of standard output",
                      item.emitter->name));
    }
    CKPLAN_RETURN_IF_ERROR(item.emitter->CheckEnding(item.path));
    CKPLAN_RETURN_IF_ERROR(CheckWritable(item.path));
  }
  return Done{};
}

Result<Done> Outputs::CheckApartFrom(const std::vector<InputFile>& inputs) const {
  std::vector<std::string> paths;
  for (const Item& item : items_) paths.push_back(item.path);
  if (prints_data_) paths.emplace_back(kStandardStream);
  return CheckApart(inputs, paths);
}

Result<Done> Outputs::CheckFor(const Source& source) const {
  const EmitSource emitted = EmitSourceOf(source);
  for (const Item& item : items_) {
    CKPLAN_RETURN_IF_ERROR(item.emitter->CheckFor(emitted));
    if (source.is_model || item.emitter->needs != Emitter::Needs::kModel) continue;
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--emit {} needs an ONNX model, not a graph file", item.emitter->name));
  }
  return Done{};
}

Result<Done> Outputs::Write(const EmitSource& source, const Screen& screen) const {
  std::vector<Content> contents;
  PendingFiles pending;
  for (const Item& item : items_) {
    CKPLAN_ASSIGN_OR_RETURN(Emitted emitted, item.emitter->emit(source, item.path));
    for (const std::string& warning : emitted.warnings) screen.Warn(warning);
    for (const std::string& note : emitted.notes) screen.Note(note);
    if (emitted.file != nullptr) {
      pending.push_back(std::move(emitted.file));
    } else {
      contents.push_back({item.path, std::move(emitted.text)});
    }
  }
  return WriteContents(contents, std::move(pending), screen);
}

bool Outputs::TakesStdout() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const Item& item) { return item.path == kStandardStream; });
}

std::vector<std::string> Outputs::Files() const {
  std::vector<std::string> files;
  for (const Item& item : items_) {
    if (item.path != kStandardStream) files.push_back(item.path);
  }
  return files;
}

Result<Done> ReportTable(const Options& options, const Outputs& outputs, const Screen& screen,
                         const std::function<std::string(std::string_view format)>& render) {
  constexpr std::string_view kJson = "json";
  if (outputs.TakesStdout()) return screen.Print(render(kJson));
  const std::string file = outputs.FileOf(kJson);
  if (!file.empty()) CKPLAN_RETURN_IF_ERROR(WriteFiles({{file, render(kJson)}}));
  const bool is_wanted = file.empty() || options.format != "text" || !screen.is_quiet;
  if (is_wanted) CKPLAN_RETURN_IF_ERROR(screen.Print(render(options.format)));
  if (!file.empty()) screen.Note(fmt::format("wrote {}", file));
  return Done{};
}

std::string Outputs::FileOf(std::string_view emitter) const {
  for (const Item& item : items_) {
    if (item.emitter->name == emitter && item.path != kStandardStream) return item.path;
  }
  return "";
}

Annotator AnnotatorOf(const Source& source, const Plan& plan, const std::string& model_path) {
  if (!source.is_model) return {};
  return [&source, &plan, model_path](const std::string& plan_json,
                                      const std::string& path) -> Result<Emitted> {
    CKPLAN_ASSIGN_OR_RETURN(const Annotation annotation,
                            AnnotationOf(source, plan, model_path, plan_json));
    CKPLAN_ASSIGN_OR_RETURN(AnnotateOutcome outcome, AnnotateModel(model_path, annotation, path));
    return Emitted{{}, std::move(outcome.file), std::move(outcome.warnings)};
  };
}

}  // namespace ckplan
