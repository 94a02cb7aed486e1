// ckplan graph: the TensorGraph of a model, as graph.json or a drawing.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/files.h"
#include "lib/files/emit/emitters.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/expand.h"

namespace ckplan {

void AddGraphOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  options.request.Add(line, RequestFlags::Group::kReading);
  options.request.Add(line, "granularity");
  line.Flag("--joint", "write the whole training step as a joint graph", &options.wants_joint);
  line.Value("-o,--output", "FILE", "write the graph there; - (the default) is standard output",
             &options.output);
  line.List("--emit", "KIND=FILE",
            fmt::format("write it as {}", EmitterNames(EmitSubject::kGraph, " or ")),
            &options.emits);
  line.Choice("-f,--format", {"json", "dot"}, "format of the file that -o writes", &options.format);
  AddCommonOptions(line, options);
}

Result<ExitCode> RunGraph(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, options.request.Read());
  Options adjusted = options;
  if (!adjusted.output && adjusted.emits.empty()) adjusted.output = kStandardStream;
  adjusted.format = "text";  // Files hold the data; the output on the screen is text.
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(adjusted, options.format, EmitSubject::kGraph));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.source));
  CKPLAN_ASSIGN_OR_RETURN(Source source, LoadSource(options.source, request));
  progress.Clear();
  WarnOf(source, screen);
  if (request.granularity == Granularity::kLayer) {
    if (source.joint) {
      return MakeError(ErrorCode::kUsage,
                       "--granularity layer needs a forward graph; this is a joint graph");
    }
    source.graph = FoldLayers(source.graph).graph;
  }
  if (options.wants_joint && !source.joint) {
    source.joint = ExpandForAnyOrder(source.graph).graph;
  }
  CKPLAN_RETURN_IF_ERROR(outputs.CheckFor(source));
  CKPLAN_RETURN_IF_ERROR(outputs.Write(EmitSourceOf(source), screen));
  for (const std::string& file : outputs.Files()) screen.Note(fmt::format("wrote {}", file));
  return ExitCode::kOk;
}

}  // namespace ckplan
