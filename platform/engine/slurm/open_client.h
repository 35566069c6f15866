// Chooses the client of Slurm: slurmrestd's if the options name a slurmrestd, else Slurm's
// programs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/options.h"
#include "engine/slurm/rest_client.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Instead of an address: slurmrestd's socket in a usual place, if there is one that this user may
/// connect to; else Slurm's programs.
inline constexpr const char* kFindRest = "auto";

/// Sends no request yet. kInvalid: the address of slurmrestd is malformed, or a token must not be
/// sent there, or the user does not exist. kNotFound: one of Slurm's programs is missing. On the
/// loop's thread, which must outlive the client.
base::Result<std::unique_ptr<SlurmClient>> open_client(base::EventLoop& loop,
                                                       const SlurmEngineOptions& options);

/// How slurmrestd is used, according to the options. REQUIRES: options.rest is an address.
base::Result<RestOptions> rest_options(const SlurmEngineOptions& options);

/// The usual places of slurmrestd's socket. The first is the one in the variable SLURMRESTD.
std::vector<std::filesystem::path> usual_rest_sockets(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

/// Whether the socket exists and this user may connect to it.
bool may_connect_to(const std::filesystem::path& socket);

}  // namespace muster::engine::slurm
