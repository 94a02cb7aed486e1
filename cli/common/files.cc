#include "cli/common/files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {
namespace {

std::string FolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::optional<struct stat> StatusOf(const std::string& path, int standard_stream) {
  struct stat status {};
  const int fault =
      path == kStandardStream ? fstat(standard_stream, &status) : stat(path.c_str(), &status);
  if (fault != 0) return std::nullopt;
  return status;
}

// Returns whether the file is a terminal, /dev/null or a socket: writing to one does not replace
// what is read from it.
bool IsStream(const struct stat& status) {
  return S_ISCHR(status.st_mode) || S_ISSOCK(status.st_mode);
}

// Returns the path with the letters of the file's own name, but not of its folders, in lower case.
std::string LowerFileName(std::string path) {
  for (size_t i = path.rfind('/') + 1; i < path.size(); ++i) {
    path[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(path[i])));
  }
  return path;
}

// The file that a path of the command line names, which need not exist yet.
class Place {
 public:
  Place(const std::string& path, int standard_stream)
      : status_(StatusOf(path, standard_stream)), name_(LowerFileName(LinkTarget(path))) {}

  bool exists() const { return status_.has_value(); }
  bool HasNameOf(const Place& other) const { return name_ == other.name_; }

  bool IsSameAs(const Place& other) const {
    if (exists() != other.exists()) return false;
    if (!exists()) return name_ == other.name_;
    const bool is_same =
        status_->st_dev == other.status_->st_dev && status_->st_ino == other.status_->st_ino;
    return is_same && !IsStream(*status_);
  }

 private:
  std::optional<struct stat> status_;
  std::string name_;
};

std::string Shown(const std::string& output) {
  return output == kStandardStream ? "standard output" : fmt::format("\"{}\"", output);
}

Error WouldReplace(const std::string& output, const InputFile& input) {
  const bool is_named_so = output == input.path || input.path == kStandardStream;
  const std::string same = is_named_so ? "" : fmt::format(" ({} is the same file)", Shown(output));
  return MakeError(ErrorCode::kUsage,
                   fmt::format("refusing to overwrite {} {}{}; name another file to write",
                               input.role, Shown(is_named_so ? output : input.path), same));
}

Error WrittenTwice(const std::string& first, const std::string& second) {
  if (first == second) {
    return MakeError(ErrorCode::kUsage, fmt::format("\"{}\" is named for two outputs", first));
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{} and {} are the same file; name a different file for each output",
                               Shown(first), Shown(second)));
}

}  // namespace

std::vector<InputFile> InputsOf(const std::string& source) {
  std::vector<InputFile> inputs;
  std::string role = IsGraphFile(source) ? "the graph" : "the model";
  for (std::string& path : FilesOf(source)) {
    inputs.push_back({std::exchange(role, "a file of the model's weights"), std::move(path)});
  }
  return inputs;
}

Result<Done> CheckApart(const std::vector<InputFile>& inputs,
                        const std::vector<std::string>& outputs) {
  std::vector<Place> places;
  for (const std::string& output : outputs) places.emplace_back(output, STDOUT_FILENO);
  for (const InputFile& input : inputs) {
    const Place read(input.path, STDIN_FILENO);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (read.exists() && places[i].IsSameAs(read)) return WouldReplace(outputs[i], input);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (places[i].IsSameAs(places[j])) return WrittenTwice(outputs[j], outputs[i]);
    }
  }
  return Done{};
}

std::string NewJsonFile(std::string_view stem, const std::vector<std::string>& taken) {
  std::string name = fmt::format("{}.json", stem);
  const auto is_taken = [&](const std::string& path) {
    const Place place(name, STDOUT_FILENO);
    const Place other(path, STDOUT_FILENO);
    return !path.empty() && (other.HasNameOf(place) || other.IsSameAs(place));
  };
  for (int n = 2; std::any_of(taken.begin(), taken.end(), is_taken); ++n) {
    name = fmt::format("{}{}.json", stem, n);
  }
  return name;
}

Result<Done> CheckWritable(const std::string& path) {
  if (path == kStandardStream) return Done{};
  struct stat status {};
  const std::string target = LinkTarget(path);
  const bool exists = stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return IoError("write", path, EISDIR);
  if (exists && access(target.c_str(), W_OK) != 0) return IoError("write", path, errno);
  const bool is_renamed_over = !exists || S_ISREG(status.st_mode);
  if (is_renamed_over && access(FolderOf(target).c_str(), W_OK) != 0) {
    return IoError("write", path, errno);
  }
  return Done{};
}

Result<Done> FinishFiles(const std::vector<OutputFile>& files, PendingFiles& pending) {
  // Devices and pipes come last, because bytes written to them cannot be taken back.
  for (const bool is_special : {false, true}) {
    for (const OutputFile& file : files) {
      if (IsSpecialFile(file.path) != is_special) continue;
      CKPLAN_ASSIGN_OR_RETURN(auto one, PendingFile::Create(file.path));
      CKPLAN_RETURN_IF_ERROR(one->Append(file.text));
      pending.push_back(std::move(one));
    }
  }
  for (const auto& one : pending) CKPLAN_RETURN_IF_ERROR(one->Finish());
  return Done{};
}

Result<Done> CommitFiles(const PendingFiles& pending) {
  for (const auto& one : pending) CKPLAN_RETURN_IF_ERROR(one->Commit());
  return Done{};
}

Result<Done> WriteFiles(const std::vector<OutputFile>& files) {
  PendingFiles pending;
  CKPLAN_RETURN_IF_ERROR(FinishFiles(files, pending));
  return CommitFiles(pending);
}

}  // namespace ckplan
