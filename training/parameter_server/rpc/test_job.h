// A job for tests: parameter servers on free ports of this machine, and workers that join them,
// over real sockets and TLS.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/parameter_server/client.h"
#include "muster/parameter_server/server.h"

namespace muster::parameter_server::testing {

inline constexpr const char* kKey = "00112233445566778899aabbccddeeff";
inline constexpr const char* kOtherKey = "ffeeddccbbaa99887766554433221100";

/// The values of a tensor.
using Values = std::vector<float>;

class Job {
 public:
  explicit Job(int count, const ServerOptions& options = {}) {
    ServerOptions with_key = options;
    with_key.key = kKey;
    for (int i = 0; i < count; ++i) {
      auto server = Server::start(with_key);
      if (!server) {
        ADD_FAILURE() << server.error().to_string();
        continue;
      }
      addresses.push_back(server->address());
      servers.push_back(*std::move(server));
    }
  }

  ClientOptions options(int worker) const {
    return {.servers = addresses, .worker = worker, .key = kKey};
  }

  Client join(int worker) const {
    auto client = Client::connect(options(worker));
    // Without its client a test cannot continue.
    if (!client) throw std::runtime_error(client.error().to_string());
    return *std::move(client);
  }

  std::vector<std::string> addresses;
  std::vector<Server> servers;
};

/// Returns once the worker waits for slower workers in a call. If it never waits, the test times
/// out.
inline void until_it_waits(const Server& server, int worker) {
  while (true) {
    for (const WorkerStatus& one : server.status().workers) {
      if (one.worker == worker && one.waits) return;
    }
    std::this_thread::yield();
  }
}

/// Returns once `count` workers are present.
inline void until_there_are(const Server& server, std::size_t count) {
  while (server.status().workers.size() != count) std::this_thread::yield();
}

}  // namespace muster::parameter_server::testing
