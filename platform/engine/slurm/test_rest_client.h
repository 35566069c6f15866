// For tests: a client of a scripted slurmrestd, on a loop that runs while the test waits for an
// answer.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/test_loop.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/scripted_slurmrestd.h"

namespace muster::engine::slurm {

inline http::Response response(std::string body, int status = 200) {
  http::Response answer{.status = status};
  answer.body = std::move(body);
  return answer;
}

class RestClientTest : public testing::Test, protected base::TestLoop {
 protected:
  RestOptions options(const std::filesystem::path& socket) {
    return {.endpoint = {.where = RestSocket{.socket = socket}, .prefix = {}},
            .user = "ann",
            .user_id = 1000,
            .token_command = {},
            .token_trust = std::chrono::milliseconds(0)};
  }
  base::Result<uint64_t> submit(RestClient& client, Submission submission = one_task()) {
    return answer<uint64_t>([&](auto then) { client.submit(submission, std::move(then)); });
  }
  base::Result<std::vector<ListedJob>> jobs(RestClient& client) {
    return answer<std::vector<ListedJob>>([&](auto then) { client.jobs(std::move(then)); });
  }
  base::Result<void> cancel(RestClient& client, std::vector<uint64_t> ids) {
    return answer<void>([&](auto then) { client.cancel(ids, std::move(then)); });
  }
  static Submission one_task() {
    return {.name = "job",
            .comment = "muster:x",
            .script = "#!/bin/sh\n",
            .components = {{.tasks = 1}},
            .environment = {{"PATH", "/bin"}}};
  }
};

}  // namespace muster::engine::slurm
