// The files that a command line asks for: -o FILE, and --emit KIND=FILE any number of times, where
// KIND is an emitter's name (lib/emit/emitters.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/files.h"
#include "cli/common/terminal.h"
#include "lib/emit/emitters.h"
#include "lib/planner/source.h"

namespace ckplan {

// What is to be written of a source, or of a plan for it. Refers to both.
EmitSource EmitSourceOf(const Source& source, const Plan* plan = nullptr, Annotator annotate = {});

class Outputs {
 public:
  // The file of -o is written by the emitter named `main`. kUsage: an unknown kind, one that does
  // not take `subject`, a file named twice or with another ending than the emitter takes, one that
  // is an input of the command, or more than one output to standard output. kIo: a file could not
  // be written.
  static Result<Outputs> Create(const Options& options, std::string_view main, EmitSubject subject);

  // kUsage: an annotated model is asked for, but the source is not a model; or a form that joint
  // graphs do not have, but it is one.
  Result<Done> CheckFor(const Source& source) const;

  // For inputs that are found later. kUsage: an output is one of them.
  Result<Done> CheckApartFrom(const std::vector<InputFile>& inputs) const;

  // Writes all files or none; see FinishFiles. They appear once what goes to standard output is
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
  bool prints_data_ = false;  // Standard output takes data that is none of the items.
};

// For commands whose result is a table that is also JSON: writes the JSON to the file of -o, and
// prints the form that --format names, unless standard output takes the JSON. `render` gives the
// result in a form: "text", "json".
Result<Done> TellTable(const Options& options, const Outputs& outputs, const Screen& screen,
                       const std::function<std::string(std::string_view format)>& render);

}  // namespace ckplan
