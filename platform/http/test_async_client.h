// For tests: requests of an AsyncClient, on a loop that runs while the test waits for their
// answers.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/test_loop.h"
#include "http/async_client.h"

namespace muster::http {

/// A time limit that the test exceeds.
inline constexpr std::chrono::milliseconds kSoon{50};

class AsyncClientTest : public testing::Test, protected base::TestLoop {
 protected:
  base::Result<Response> ask(AsyncClient& client, AsyncRequest request,
                             const AsyncLimits& limits = {}) {
    AsyncCall call;
    return answer<Response>(
        [&](auto then) { call = client.send(std::move(request), limits, std::move(then)); });
  }

  base::Result<Response> ask(const std::filesystem::path& socket, AsyncRequest request = {},
                             const AsyncLimits& limits = {}) {
    AsyncClient client(loop(), socket, "the server");
    return ask(client, std::move(request), limits);
  }

  /// Longer than the time limit.
  void wait_longer_than_soon() {
    bool waited = false;
    const auto timer = loop().after(3 * kSoon, [&] {
      waited = true;
      look();
    });
    EXPECT_TRUE(run_until([&] { return waited; }));
  }
};

/// Answers with a description of the request. The header x-mine comes back as x-seen.
inline Response echo(const Request& request) {
  Response answer{.body = request.method + " " + request.path + " " + request.body};
  answer.headers["x-seen"] = request.headers.contains("x-mine") ? request.headers.at("x-mine") : "";
  return answer;
}

}  // namespace muster::http
