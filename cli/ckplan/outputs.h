// The files a command writes: -o FILE, and --emit KIND=FILE any number of times, where
// KIND is an emitter's name (lib/files/emit/emitters.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/files.h"
#include "cli/common/terminal.h"
#include "lib/files/emit/emitters.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// The source or plan to write. Refers to both.
EmitSource EmitSourceOf(const Source& source, const Plan* plan = nullptr, Annotator annotate = {});

class Outputs {
 public:
  // The emitter named `main` writes the file of -o. Returns kUsage for an unknown kind, a kind that
  // does not take `subject`, a file named twice or with a wrong ending, an output that is an input
  // of the command, or more than one output to standard output. Returns kIo if a file could not be
  // written.
  static Result<Outputs> Create(const Options& options, std::string_view main, EmitSubject subject);

  // Returns kUsage if an annotated model is asked for but the source is not a model, or if joint
  // graphs do not have a form that is asked for and the source is one.
  Result<Done> CheckFor(const Source& source) const;

  // Checks inputs that are found later. Returns kUsage if an output is one of them.
  Result<Done> CheckApartFrom(const std::vector<InputFile>& inputs) const;

  // Writes all files or none; see FinishFiles. The files appear after standard output has been
  // written.
  Result<Done> Write(const EmitSource& source, const Screen& screen) const;

  bool empty() const { return items_.empty(); }
  bool TakesStdout() const;
  std::vector<std::string> Files() const;              // In the order of the command line.
  std::string FileOf(std::string_view emitter) const;  // Empty if that emitter writes no file.

 private:
  struct Item {
    const Emitter* emitter = nullptr;
    std::string path;
  };
  Result<Done> CheckPaths(int for_stdout) const;

  std::vector<Item> items_;
  bool prints_data_ = false;  // Standard output takes data that is not among the items.
};

// Prints the result of a command that is a table and also JSON. Writes the JSON to the file of -o
// and prints the form that --format names, unless standard output takes the JSON. `render` returns
// the result in a form: "text" or "json".
Result<Done> ReportTable(const Options& options, const Outputs& outputs, const Screen& screen,
                         const std::function<std::string(std::string_view format)>& render);

// Writes a plan as markers into its model's file; docs/onnx-markers.md explains them.

// Returns a function that writes the model at `model_path`, from which `source` was read, with the
// plan and its JSON to a file. Returns an empty function if the source is a graph file. The
// function refers to `source` and `plan`, which must outlive it.
Annotator AnnotatorOf(const Source& source, const Plan& plan, const std::string& model_path);

}  // namespace ckplan
