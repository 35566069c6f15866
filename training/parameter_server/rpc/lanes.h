// All connections of a client: work that each does its part of, at the same time, and the first
// failure, which ends everything.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/rpc/lane.h"

namespace muster::parameter_server {

class Lanes {
 public:
  /// What a server's part came to.
  using Part = collective::Result<std::uint64_t>;
  using Work = std::function<Part(std::size_t server, Connection&)>;
  using Done = std::function<void(collective::Result<std::vector<std::uint64_t>>)>;

  Lanes(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// What is under way ends with an error.
  ~Lanes();

  std::size_t size() const { return lanes_.size(); }

  /// Has every connection do `work`, in the order of the calls, and calls `done` on one of their
  /// threads with what it came to, server by server, or with the failure.
  void on_all(const Work& work, Done done);

  /// The same on the connections `first` .. `end` - 1; waits for them.
  collective::Result<std::vector<std::uint64_t>> wait_for(std::size_t first, std::size_t end,
                                                          const Work& work);

 private:
  struct Round;

  void start(std::size_t first, std::size_t end, const Work& work, Done done);
  void fail(const collective::Error& error);
  std::optional<collective::Error> failure() const;

  mutable std::mutex mutex_;
  std::optional<collective::Error> failure_;
  std::mutex
      order_;  // held while a round is posted, so that all lanes have the rounds in one order
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace muster::parameter_server
