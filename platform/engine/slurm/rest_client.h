// A client of slurmrestd: HTTP over a unix socket, which identifies the user, or over TCP with a
// token. Supports the versions of slurmrestd's interface that Slurm 22.05 (Debian 12) and later
// serve (rest_request.h).
//
// On the loop's thread. Large answers are parsed on another thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/slurm/rest_access.h"
#include "engine/slurm/rest_request.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

struct RestOptions {
  RestEndpoint endpoint;
  std::string user;                 ///< the user who submits, and whose jobs are listed
  std::optional<uint32_t> user_id;  ///< the same user, if this machine has an account of that name
  /// Prints a token. TCP always needs one, a unix socket only if slurmrestd asks for one. A token
  /// is sent only if is_private(endpoint).
  std::vector<std::string> token_command{"scontrol", "token", "lifespan=1800"};
  /// A token younger than this is assumed valid: a failure has another cause.
  std::chrono::milliseconds token_trust{60'000};

  std::chrono::milliseconds connect_patience{5'000};
  std::chrono::milliseconds answer_patience{60'000};
  /// Longer answers are rejected. (Slurm 22.05 lists a thousand jobs in 5 MB.)
  size_t most_bytes = 256U << 20U;
  int newest_version = kNewestRestVersion;  ///< that the client uses
};

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

}  // namespace muster::engine::slurm
