// The pod in which this server runs. Of several servers that share a store, one leads, and only its
// pod has the label muster.dev/leads=true: the Service of the chart (packaging/kubernetes) selects
// it by that label, so clients and pods of jobs reach the server that leads.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/kubernetes/api_client.h"

namespace muster::engine::kubernetes {

inline constexpr const char* kLeadsLabel = "muster.dev/leads";

class ServerPod {
 public:
  /// `pause`: between two attempts.
  ServerPod(base::EventLoop& loop, std::unique_ptr<Access> access, ObjectName pod,
            ApiOptions options = {}, std::chrono::milliseconds pause = std::chrono::seconds(2));

  /// Sets the label, or removes it. Repeated until the API server has carried it out; a later call
  /// replaces an earlier one.
  void set_leads(bool leads);

 private:
  void send();

  base::EventLoop& loop_;
  ApiClient client_;
  ObjectName pod_;
  std::chrono::milliseconds pause_;
  bool leads_ = false;
  std::string complaint_;  ///< the last error that was logged
  Call call_;
  base::EventLoop::Interest timer_;
};

/// The pod named by $MUSTER_POD_NAME, which the chart sets if there are several servers. nullptr: the
/// variable is not set, so no Service selects by the label.
///
/// Errors: as of open_access().
base::Result<std::unique_ptr<ServerPod>> server_pod(base::EventLoop& loop,
                                                    const std::vector<std::string>& environment);

}  // namespace muster::engine::kubernetes
