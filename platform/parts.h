// The parts of the program that a build may leave out: engines beside the process engine, other
// products' command lines and job files.
//
// all_parts.cc has them all. process_parts.cc has the process engine alone: what `make quickstart`
// compiles (MUSTER_PARTS in platform/CMakeLists.txt, docs/decisions/0035-first-build.md). The linker takes
// one of the two; main.cc is the same for both.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "cli/connection/connection.h"
#include "config/serve_options.h"
#include "engine/engine.h"

namespace muster {

struct EnginePart {
  std::string_view name;  ///< "slurm"
  base::Result<std::unique_ptr<engine::Engine>> (*make)(base::EventLoop& loop,
                                                        const std::filesystem::path& jobs_folder,
                                                        const config::ServeOptions& options);
  job::Diagnosis (*examine)(const cli::DoctorInput& input);
};

/// A command line of another product, under the name of that product's program.
struct DialectPart {
  std::string_view name;  ///< "runai"
  int (*run)(const std::vector<std::string>& words, const cli::Hooks& hooks);
};

struct Parts {
  std::vector<EnginePart> engines;
  std::vector<DialectPart> dialects;
  /// As cli::Hooks::read_foreign. nullptr: it is left out.
  base::Result<cli::ForeignJobs> (*read_foreign)(const std::vector<config::YamlValue>& documents,
                                                 const std::string& source,
                                                 const cli::ForeignOptions& options) = nullptr;
  /// Creates the function that a server in a pod calls when it begins or ceases to lead. An empty
  /// function: the server does not run in a pod. nullptr: the program lacks this part.
  base::Result<std::function<void(bool)>> (*make_role_sign)(base::EventLoop& loop) = nullptr;
};

const Parts& parts();

}  // namespace muster
