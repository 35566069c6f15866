#include "engine/slurm/open_client.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "engine/host_facts.h"
#include "http/sockets.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace fs = std::filesystem;

namespace {

/// Nullopt: this machine has no such user.
std::optional<uint32_t> id_of(const std::string& name) {
  std::array<char, 16 << 10> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  return found == nullptr ? std::nullopt : std::optional<uint32_t>(found->pw_uid);
}

std::optional<std::string> own_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<std::unique_ptr<SlurmClient>> by_programs(base::EventLoop& loop) {
  MUSTER_TRY(auto client, CommandClient::open(loop));
  return std::unique_ptr<SlurmClient>(std::move(client));
}

Result<std::unique_ptr<SlurmClient>> by_rest(base::EventLoop& loop,
                                             const SlurmEngineOptions& options) {
  MUSTER_TRY(RestOptions how, rest_options(options));
  return std::unique_ptr<SlurmClient>(std::make_unique<RestClient>(loop, std::move(how)));
}

}  // namespace

bool can_connect_to(const fs::path& socket) {
  const auto connected = http::try_to_connect_to(socket);
  return connected || connected.error().code == ErrorCode::kExhausted;  // it is busy
}

std::vector<fs::path> usual_rest_sockets(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  std::vector<fs::path> sockets;
  if (const auto named = variable("SLURMRESTD")) {
    constexpr std::string_view kUnix = "unix:";
    std::string_view path = *named;
    if (path.starts_with(kUnix)) path.remove_prefix(kUnix.size());
    while (path.starts_with("//")) path.remove_prefix(1);
    if (path.starts_with('/')) sockets.emplace_back(path);
  }
  for (const char* path : {"/run/slurmrestd/slurmrestd.socket", "/run/slurmrestd/slurmrestd.sock",
                           "/run/slurmrestd.socket", "/run/slurmrestd.sock",
                           "/run/slurm/slurmrestd.socket", "/run/slurm/slurmrestd.sock"}) {
    sockets.emplace_back(path);
  }
  return sockets;
}

Result<RestOptions> rest_options(const SlurmEngineOptions& options) {
  MUSTER_TRY(RestEndpoint endpoint, parse_rest_endpoint(options.rest));
  const bool is_socket = std::holds_alternative<RestSocket>(endpoint.where);
  if (!is_socket && !is_private(endpoint)) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "slurmrestd at " + to_string(endpoint) +
                " requires a token, which other users of the network could read and use as "
                "this user in Slurm",
        .advice =
            "use a unix socket, an address of this machine, or https with a TLS proxy "
            "in front of slurmrestd"};
  }
  RestOptions how{.endpoint = std::move(endpoint)};
  const std::string own = user_name();
  how.user = options.rest_user.empty() ? own : options.rest_user;
  // The cluster may have a user that this machine does not have: use the name.
  how.user_id = how.user == own ? ::geteuid() : id_of(how.user);
  if (!options.token_command.empty()) {
    how.token_command = options.token_command;
  } else if (how.user != own) {
    how.token_command.push_back("username=" + how.user);
  }
  return how;
}

Result<std::unique_ptr<SlurmClient>> open_client(base::EventLoop& loop,
                                                 const SlurmEngineOptions& options) {
  if (options.rest.empty()) return by_programs(loop);
  if (options.rest != kFindRest) return by_rest(loop, options);
  // Only sbatch supports options of sbatch.
  if (!options.sbatch_options.empty()) return by_programs(loop);
  for (const fs::path& socket : usual_rest_sockets(own_variable)) {
    if (!can_connect_to(socket)) continue;
    SlurmEngineOptions found = options;
    found.rest = socket.string();
    return by_rest(loop, found);
  }
  return by_programs(loop);
}

}  // namespace muster::engine::slurm
