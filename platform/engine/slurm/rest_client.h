// Slurm by way of slurmrestd: HTTP over a unix socket, where the socket says who asks, or over TCP
// with a token. The versions of its interface that Debian 12's 22.05 and all newer ones serve are
// spoken (rest_versions.h).
//
// On the loop's thread. Large answers are read on a thread of their own.
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
  std::string user;                 ///< whom it is asked as, and whose jobs are listed
  std::optional<uint32_t> user_id;  ///< the same, where this machine knows it
  /// Prints a token, where one is needed: over TCP always, over a unix socket where slurmrestd asks
  /// for one. One is sent only where is_private(endpoint).
  std::vector<std::string> token_command{"scontrol", "token", "lifespan=1800"};
  /// One that is younger is taken to be good: what fails with it has other reasons.
  std::chrono::milliseconds token_trust{60'000};

  std::chrono::milliseconds connect_patience{5'000};
  std::chrono::milliseconds answer_patience{60'000};
  /// An answer with more bytes is none: a thousand jobs of 22.05 are 5 MB.
  size_t most_bytes = 256U << 20U;
  int newest_version = kNewestRestVersion;  ///< that is spoken
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
