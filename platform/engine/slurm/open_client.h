// The two clients of Slurm, and the choice between them: slurmrestd's if the options name a
// slurmrestd, else Slurm's programs.
//
// On the loop's thread, like SlurmClient.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/program_runner.h"
#include "engine/slurm/options.h"
#include "engine/slurm/rest_access.h"
#include "engine/slurm/rest_request.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

struct CommandOptions {
  std::string folder;  ///< of the programs; empty: searched in PATH
  /// A program that takes longer is killed. Slurm's own timeout for its controller is 10 s, or 20 s
  /// with a backup controller.
  std::chrono::milliseconds patience{45000};
  size_t submits_at_once = 8;  ///< sbatch mostly waits for the controller
};

/// Runs Slurm's own programs: sbatch, squeue, scancel, sinfo, scontrol, and sacct if there is an
/// accounting database. For clusters without slurmrestd. Requires Slurm 21.08 or later.
class CommandClient : public SlurmClient {
 public:
  /// kNotFound: a program is missing.
  static base::Result<std::unique_ptr<CommandClient>> open(base::EventLoop& loop,
                                                           CommandOptions options = {});
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;

  void submit(Submission submission, Then<uint64_t> then) override;
  void jobs(Then<std::vector<ListedJob>> then) override;
  void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) override;
  void cancel(std::vector<uint64_t> ids, Then<void> then) override;
  void nodes(Then<std::vector<ListedNode>> then) override;
  void facts(Then<ClientFacts> then) override;

 private:
  CommandClient(base::EventLoop& loop, CommandOptions options);
  std::string program(const std::string& name) const;
  void ask(const std::string& name, std::vector<std::string> arguments, ProgramRunner::Then then);

  base::EventLoop& loop_;
  CommandOptions options_;
  std::vector<std::string> environment_;  ///< of this process
  ProgramRunner submits_;
  ProgramRunner others_;  ///< must not wait for hundreds of submissions
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

struct RestOptions {
  RestEndpoint endpoint;
  std::string user;                 ///< submits the jobs; only this user's jobs are listed
  std::optional<uint32_t> user_id;  ///< the same user, if this machine has an account of that name
  /// Prints a token. TCP always needs one, a unix socket only if slurmrestd asks for one. A token
  /// is sent only if is_private(endpoint).
  std::vector<std::string> token_command{"scontrol", "token", "lifespan=1800"};
  /// A token younger than this is assumed to be valid, so a failure has another cause.
  std::chrono::milliseconds token_trust{60'000};

  std::chrono::milliseconds connect_patience{5'000};
  std::chrono::milliseconds answer_patience{60'000};
  /// Longer answers are rejected. (Slurm 22.05 lists a thousand jobs in 5 MB.)
  size_t most_bytes = 256U << 20U;
  int newest_version = kNewestRestVersion;  ///< that the client uses
};

/// Calls slurmrestd: HTTP over a unix socket, which identifies the user, or over TCP with a token.
/// Supports the versions of slurmrestd's interface that Slurm 22.05 (Debian 12) and later serve
/// (rest_request.h). Large answers are parsed on another thread.
class RestClient : public SlurmClient {
 public:
  RestClient(base::EventLoop& loop, RestOptions options);
  ~RestClient() override;
  RestClient(const RestClient&) = delete;
  RestClient& operator=(const RestClient&) = delete;

  void submit(Submission submission, Then<uint64_t> then) override;
  void jobs(Then<std::vector<ListedJob>> then) override;
  void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) override;
  void cancel(std::vector<uint64_t> ids, Then<void> then) override;
  void nodes(Then<std::vector<ListedNode>> then) override;
  void facts(Then<ClientFacts> then) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Instead of an address: slurmrestd's socket in a usual place, if there is one that this user can
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

/// Whether this user can connect to the socket now. A slurmrestd that was killed leaves its socket
/// behind.
bool can_connect_to(const std::filesystem::path& socket);

}  // namespace muster::engine::slurm
