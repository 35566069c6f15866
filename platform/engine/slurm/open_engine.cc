// How a Slurm engine meets Slurm: by slurmrestd where it was told of one, else by Slurm's programs.
#include <pwd.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/process/host_facts.h"
#include "engine/slurm/command_client.h"
#include "engine/slurm/meet_slurm.h"
#include "engine/slurm/rest_client.h"
#include "engine/slurm/slurm_engine.h"

namespace muster::engine {

namespace {

Result<std::unique_ptr<slurm::SlurmClient>> rest_client(base::EventLoop& loop,
                                                        const slurm::SlurmEngineOptions& options) {
  slurm::RestOptions how;
  MUSTER_TRY(how.endpoint, slurm::parse_rest_endpoint(options.rest));
  how.user = options.rest_user.empty() ? user_name() : options.rest_user;
  if (const passwd* const known = ::getpwnam(how.user.c_str())) how.user_id = known->pw_uid;
  const bool is_socket = std::holds_alternative<slurm::RestSocket>(how.endpoint.where);
  how.token_command = options.token_command;
  if (how.token_command.empty() && !is_socket) {
    how.token_command = {"scontrol", "token", "username=" + how.user};
  }
  if (!how.token_command.empty() && !slurm::is_private(how.endpoint)) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "a token would be sent in the clear to " + to_string(how.endpoint),
                       .advice = "name a socket (unix:///PATH), or https://"};
  }
  return std::unique_ptr<slurm::SlurmClient>(
      std::make_unique<slurm::RestClient>(loop, std::move(how)));
}

}  // namespace

Result<std::unique_ptr<slurm::SlurmClient>> slurm::meet_slurm(base::EventLoop& loop,
                                                              const SlurmEngineOptions& options) {
  if (!options.rest.empty()) return rest_client(loop, options);
  MUSTER_TRY(auto client, CommandClient::open(loop));
  return std::unique_ptr<SlurmClient>(std::move(client));
}

Result<std::unique_ptr<SlurmEngine>> SlurmEngine::open(base::EventLoop& loop,
                                                       slurm::SlurmEngineOptions options) {
  MUSTER_TRY(auto client, slurm::meet_slurm(loop, options));
  return std::make_unique<SlurmEngine>(loop, std::move(options), std::move(client));
}

}  // namespace muster::engine
