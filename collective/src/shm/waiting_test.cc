// The messages of a rank that has waited for long.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

#include "shm/shm_world.h"

namespace muster::collective::shm {
namespace {

std::unique_ptr<Monitor> monitor_of(int rank, int socket) {
  MonitorOptions options;
  options.rank = rank;
  options.host = "here";
  options.timeout = std::chrono::seconds(3);
  std::vector<Link> links;
  links.push_back(
      {.rank = 1 - rank, .host = "here", .is_local = true, .socket = Descriptor(socket)});
  return std::make_unique<Monitor>(std::move(options), std::move(links));
}

std::vector<std::unique_ptr<Monitor>> two_monitors() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  std::vector<std::unique_ptr<Monitor>> monitors;
  for (const int rank : {0, 1}) {
    monitors.push_back(monitor_of(rank, ends[static_cast<std::size_t>(rank)]));
  }
  return monitors;
}

// Rank 0 waits in its second call, which rank 1 never enters. Returns rank 0's error.
Error failure_of_waiting(const std::function<Status(ShmBackend&)>& wait) {
  const std::vector<std::unique_ptr<Monitor>> monitors = two_monitors();
  Status outcome;
  on_host(
      2,
      [&](ShmBackend& host, int rank) {
        const Call first{.kind = CallKind::kBarrier, .sequence = 1};
        ASSERT_TRUE(host.barrier(first));
        if (rank == 1) return;
        monitors[0]->entered(2);
        outcome = wait(host);
      },
      0, monitors);
  EXPECT_FALSE(outcome) << "the call succeeded";
  return outcome ? Error{} : outcome.error();
}

// Rank 0 waits for rank 1, which leaves after the first call. Returns rank 0's error. The monitor
// has counted no call, so it is the backend that ends the wait.
Error failure_of_waiting_for_the_departed(const std::function<Status(ShmBackend&)>& wait) {
  std::vector<std::unique_ptr<Monitor>> monitors = two_monitors();
  Status outcome;
  on_host(
      2,
      [&](ShmBackend& host, int rank) {
        ASSERT_TRUE(host.barrier({.kind = CallKind::kBarrier, .sequence = 1}));
        if (rank == 0) {
          outcome = wait(host);
        } else {
          monitors[1].reset();
        }
      },
      0, monitors);
  EXPECT_FALSE(outcome) << "the call succeeded";
  return outcome ? Error{} : outcome.error();
}

TEST(ShmWaiting, ForACallOfARankThatHasLeftAdvisesTheSameNumberOfCalls) {
  const Error error = failure_of_waiting_for_the_departed(
      [](ShmBackend& host) { return host.barrier({.kind = CallKind::kBarrier, .sequence = 2}); });
  EXPECT_EQ(error.message,
            "rank 1 on host here has left, but rank 0 on host here still waits for it in call 2 "
            "(barrier)");
  EXPECT_EQ(error.advice, "every rank must make the same number of calls");
}

TEST(ShmWaiting, ForAMessageOfARankThatHasLeftAdvisesToExchangeAllMessages) {
  const Error error = failure_of_waiting_for_the_departed([](ShmBackend& host) {
    std::array<std::byte, 8> data = {};
    return host.receive(data.data(), data.size(), 1);
  });
  EXPECT_EQ(error.message,
            "rank 1 on host here has left, but rank 0 on host here still waits for it in call 1 "
            "(send of 8 bytes to rank 0)");
  EXPECT_EQ(error.advice, "a rank must not leave before it has sent and received all messages");
}

TEST(ShmWaiting, NamesTheCall) {
  const Error error = failure_of_waiting([](ShmBackend& host) {
    const Call second{.kind = CallKind::kBroadcast, .root = 1, .count = 8, .sequence = 2};
    std::array<std::byte, 8> data = {};
    return host.broadcast(second, data.data());
  });
  EXPECT_TRUE(error.message.starts_with(
      "rank 1 on host here did not enter call 2 (broadcast of 8 bytes from rank 1) within "))
      << error.message;
}

TEST(ShmWaiting, NamesTheMessage) {
  const Error error = failure_of_waiting([](ShmBackend& host) {
    std::array<std::byte, 8> data = {};
    return host.receive(data.data(), data.size(), 1);
  });
  EXPECT_TRUE(error.message.starts_with(
      "rank 1 on host here did not enter call 1 (send of 8 bytes to rank 0) within "))
      << error.message;
}

}  // namespace
}  // namespace muster::collective::shm
