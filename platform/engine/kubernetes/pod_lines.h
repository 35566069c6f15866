// The connections that the server makes to the muster-nodes in pods, through the API server
// (streams.h, node/dial.h): one for orders, made again whenever it is lost, and one for each
// stream that was ordered.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/gangs.h"
#include "engine/lent/lent_tasks.h"

namespace muster::engine::kubernetes {

class PodLines {
 public:
  /// `port`: at which muster-nodes listen; 0: they call the server, and nothing is done here.
  PodLines(base::EventLoop& loop, ApiClient& client, std::string space, std::string owner,
           uint16_t port, lent::LentTasks& tasks)
      : loop_(loop),
        client_(client),
        space_(std::move(space)),
        owner_(std::move(owner)),
        port_(port),
        tasks_(tasks) {}

  /// Connects to the task's muster-node if its pod runs and there is no connection.
  void keep(const PodGangPointer& gang, const std::string& task);
  void connect_stream(const PodGangPointer& gang, const std::string& task, uint64_t stream);

 private:
  void dial(const PodGangPointer& gang, const std::string& task);
  void dialled(const PodGangPointer& gang, const std::string& task,
               base::Result<std::shared_ptr<node::NodeConnection>> line);

  base::EventLoop& loop_;
  ApiClient& client_;
  const std::string space_;
  const std::string owner_;
  const uint16_t port_;
  lent::LentTasks& tasks_;
  std::map<uint64_t, std::shared_ptr<void>> streams_;  ///< that are being connected
};

}  // namespace muster::engine::kubernetes
