// The port of a muster-node that cannot call its server: a pod in a cluster that the server is
// outside of. The server connects to the pod's loopback interface (Kubernetes' port-forward, or
// `muster-node --bridge` under exec), once for orders and once for each stream that it has ordered.
// It first sends which of them the connection is for (ServerDial); from then on the ends behave as
// if the muster-node had called.
//
// The port is open to every process of the pod. A caller without the attempt's key gets nowhere
// (callers.h).
//
// On the loop's thread, which no PodPort must outlive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/node/brief.h"
#include "engine/node/callers.h"
#include "engine/node/server_calls.h"

namespace muster::engine::node {

class PodPort : public ServerWay {
 public:
  /// Listens on 127.0.0.1, or else ::1. kConflict: the port is in use. `brief` must outlive it.
  static base::Result<std::unique_ptr<PodPort>> open(base::EventLoop& loop, const NodeBrief& brief);

  uint16_t port() const { return gate_->port(); }

  /// Called when the server has connected for orders, and no call() waits for that.
  void on_orders(std::function<void()> arrived) { on_orders_ = std::move(arrived); }

  /// Waits for the server. kTimeout: it has not connected. The caller may call again.
  [[nodiscard]] std::shared_ptr<void> call(Hello hello, Then then) override;

 private:
  struct Call;
  /// A connection that no call() waits for yet.
  struct Arrived {
    std::shared_ptr<NodeSocket> socket;
    base::EventLoop::Interest patience;
  };

  PodPort(base::EventLoop& loop, const NodeBrief& brief) : loop_(loop), brief_(brief) {}
  void arrived(uint64_t stream, std::shared_ptr<NodeSocket> socket);
  void connect(const std::shared_ptr<Call>& call, std::shared_ptr<NodeSocket> socket);

  base::EventLoop& loop_;
  const NodeBrief& brief_;
  std::unique_ptr<CallerGate> gate_;
  std::map<uint64_t, std::weak_ptr<Call>> calls_;  ///< by stream
  std::map<uint64_t, Arrived> arrived_;            ///< by stream
  std::function<void()> on_orders_;
};

}  // namespace muster::engine::node
