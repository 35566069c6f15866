// Calls the server, for orders and for streams: finds it, shows the key and says hello.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/node/server_search.h"
#include "engine/slurm/node_brief.h"
#include "engine/slurm/node_hub.h"

namespace muster::engine::slurm {

class ServerCalls {
 public:
  using Then = std::function<void(base::Result<std::shared_ptr<NodeConnection>>)>;

  ServerCalls(base::EventLoop& loop, const NodeBrief& brief)
      : loop_(loop), brief_(brief), search_(loop) {}

  /// From now on the server says in its folder where it can be called.
  void set_shares_folder() { shares_folder_ = true; }

  /// Once, later; within some seconds for each host of the server. Drop what is returned to hear no
  /// more. kUnavailable: it does not answer; kRefused: what answers has another key.
  [[nodiscard]] std::shared_ptr<void> call(Hello hello, Then then);

 private:
  struct Call;
  CallbackAddress server() const;
  void found(const std::shared_ptr<Call>& call, base::UniqueFd socket);
  void failed(const std::shared_ptr<Call>& call, base::Error error);

  base::EventLoop& loop_;
  const NodeBrief& brief_;
  ServerSearch search_;
  bool shares_folder_ = false;
};

}  // namespace muster::engine::slurm
