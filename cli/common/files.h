// Writing whole files, and no file that is read. Nobody ever sees half a file: each is written
// beside its place under another name and renamed once all of them are complete
// (lib/base/write_file.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/read_file.h"
#include "lib/base/result.h"
#include "lib/base/write_file.h"

namespace ckplan {

// Checks, before long work starts, that a file can be written at `path`; kIo if not. "-" can always
// be written.
Result<Done> CheckWritable(const std::string& path);

// A file that a command reads, and what messages call it: "the model".
struct InputFile {
  std::string role;
  std::string path;
};
// A model or graph.json with the files of its weights.
std::vector<InputFile> InputsOf(const std::string& source);

// kUsage: an output is one of the inputs, or two outputs are one file, whatever links lead there
// and however the names are spelled. "-" is standard input or output, which may be a file as well.
// Two names in one folder that differ in case alone are one file on some systems, so they count as
// one.
Result<Done> CheckApart(const std::vector<InputFile>& inputs,
                        const std::vector<std::string>& outputs);

using PendingFiles = std::vector<std::unique_ptr<PendingFile>>;

struct OutputFile {
  std::string path;
  std::string_view text;
};
// Writes all files or none, unless renaming one fails. WriteFiles is the two halves in one: after
// the first, which adds `files` to others that are written and not finished, no place has changed.
Result<Done> WriteFiles(const std::vector<OutputFile>& files);
Result<Done> FinishFiles(const std::vector<OutputFile>& files, PendingFiles& pending);
Result<Done> CommitFiles(const PendingFiles& pending);

}  // namespace ckplan
