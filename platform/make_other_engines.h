// Creates the engines other than the process engine from the settings of a server, and examines
// them for `muster doctor`. As make_engine.h; a program with the process engine alone is built
// without this file.
#pragma once

#include <filesystem>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "cli/connection/connection.h"
#include "config/serve_options.h"
#include "engine/engine.h"

namespace muster {

base::Result<std::unique_ptr<engine::Engine>> make_container_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const config::ServeOptions& options);
base::Result<std::unique_ptr<engine::Engine>> make_slurm_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const config::ServeOptions& options);
base::Result<std::unique_ptr<engine::Engine>> make_kubernetes_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const config::ServeOptions& options);

job::Diagnosis examine_container_engine(const cli::DoctorInput& input);
job::Diagnosis examine_slurm_engine(const cli::DoctorInput& input);
job::Diagnosis examine_kubernetes_engine(const cli::DoctorInput& input);

}  // namespace muster
