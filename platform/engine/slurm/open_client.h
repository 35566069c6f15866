// Which client an engine asks Slurm by: slurmrestd's where the options name one, else Slurm's own
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

/// In the place of an address: slurmrestd's socket where it usually is, where there is one that
/// this user may connect to; else Slurm's programs.
inline constexpr const char* kFindRest = "auto";

/// Nothing is asked of Slurm yet. kInvalid: the options name no slurmrestd, one that a token must
/// not be sent to, or a user that is none. kNotFound: a program of Slurm's is missing. On the
/// loop's thread, which must outlive the client.
base::Result<std::unique_ptr<SlurmClient>> open_client(base::EventLoop& loop,
                                                       const SlurmEngineOptions& options);

/// How slurmrestd is asked, as the options have it. REQUIRES: options.rest is an address.
base::Result<RestOptions> rest_options(const SlurmEngineOptions& options);

/// Where slurmrestd's socket is usually found: SLURMRESTD (its client's own variable) first.
std::vector<std::filesystem::path> usual_rest_sockets(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

/// A socket that is there and lets this user in.
bool may_connect_to(const std::filesystem::path& socket);

}  // namespace muster::engine::slurm
