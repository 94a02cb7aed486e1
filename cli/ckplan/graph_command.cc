// ckplan graph: the TensorGraph of a model, as graph.json or as a picture.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/source.h"
#include "cli/common/files.h"
#include "lib/graph/layer_fold.h"

namespace ckplan {

void AddGraphOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  AddSourceOptions(line, options);
  AddGranularityOption(line, options);
  line.Value("-o,--output", "FILE", "write the graph there; - (the default) is standard output",
             &options.output);
  line.List("--emit", "KIND=FILE", "write it as json or dot", &options.emits);
  line.Choice("-f,--format", {"json", "dot"}, "of what -o writes", &options.format);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunGraph(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const SourceRequest request, SourceRequestOf(options, options.source));
  Options wanted = options;
  if (!wanted.output && wanted.emits.empty()) wanted.output = kStandardStream;
  wanted.format = "text";  // Of what is printed beside the files: nothing that is data.
  const OutputKind kind = options.format == "dot" ? OutputKind::kDot : OutputKind::kJson;
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs, Outputs::Create(wanted, kind));
  if (outputs.Has(OutputKind::kOnnx)) {
    return MakeError(ErrorCode::kUsage, "--emit onnx is for plans; a graph is json or dot");
  }
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.source));
  CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(request));
  progress.Clear();
  for (const std::string& warning : source.warnings) screen.Warn(warning);
  const bool is_folded = options.granularity == "layer";
  const TensorGraph graph = is_folded ? FoldLayers(source.graph).graph : source.graph;
  CKPLAN_RETURN_IF_ERROR(outputs.WriteGraph(graph, screen));
  for (const std::string& file : outputs.Files()) screen.Note(fmt::format("wrote {}", file));
  return ExitCode::kOk;
}

}  // namespace ckplan
